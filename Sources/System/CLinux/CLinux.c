#include "CLinux.h"

#include <pthread.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(struct clinux_message) == sizeof(struct mmsghdr), "layout of mmsghdr");
_Static_assert(offsetof(struct clinux_message, length) == offsetof(struct mmsghdr, msg_len), "layout of mmsghdr");
_Static_assert(sizeof(struct clinux_in6_pktinfo) == sizeof(struct in6_pktinfo), "layout of in6_pktinfo");
_Static_assert(offsetof(struct clinux_in6_pktinfo, interface_index) == offsetof(struct in6_pktinfo, ipi6_ifindex),
               "layout of in6_pktinfo");

int clinux_recvmmsg(int descriptor, struct clinux_message *messages, unsigned int count) {
    return recvmmsg(descriptor, (struct mmsghdr *)messages, count, MSG_DONTWAIT, NULL);
}

int clinux_pidfd_open(int process) {
    return (int)syscall(SYS_pidfd_open, process, 0);
}

static int release_code_of(struct dl_phdr_info *object, size_t size, void *data) {
    (void)size;
    (void)data;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int index = 0; index < object->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[index];
        // Code that cannot be written is as the file has it: it comes back from there.
        if (header->p_type != PT_LOAD || (header->p_flags & (PF_X | PF_W)) != PF_X) continue;
        uintptr_t start = (object->dlpi_addr + header->p_vaddr + page - 1) & ~(page - 1);
        uintptr_t end = (object->dlpi_addr + header->p_vaddr + header->p_memsz) & ~(page - 1);
        if (start < end) madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

void clinux_release_code(void) {
    dl_iterate_phdr(release_code_of, NULL);
}

int clinux_processor_count(void) {
    cpu_set_t processors;
    return sched_getaffinity(0, sizeof processors, &processors) < 0 ? -1 : CPU_COUNT(&processors);
}

int clinux_sendmmsg(int descriptor, struct clinux_message *messages, unsigned int count) {
    return sendmmsg(descriptor, (struct mmsghdr *)messages, count, MSG_DONTWAIT);
}

int clinux_accept4(int descriptor, int flags) { return accept4(descriptor, NULL, NULL, flags); }

int clinux_pipe2(int descriptors[2], int flags) { return pipe2(descriptors, flags); }

int clinux_setns_net(int descriptor) { return setns(descriptor, CLONE_NEWNET); }

int clinux_unshare_net(void) { return unshare(CLONE_NEWNET); }

int clinux_spawn_set_working_directory(posix_spawn_file_actions_t *actions, const char *path) {
    return posix_spawn_file_actions_addchdir_np(actions, path);
}

int clinux_spawn_flag_new_session(void) { return POSIX_SPAWN_SETSID; }

const char *clinux_error_description(int error) { return strerrordesc_np(error); }

const char *clinux_error_name(int error) { return strerrorname_np(error); }

static struct ifreq request_for(const char *name) {
    struct ifreq request;
    memset(&request, 0, sizeof request);
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    return request;
}

int clinux_tun_set_interface(int descriptor, const char *name, short flags) {
    struct ifreq request = request_for(name);
    request.ifr_flags = flags;
    return ioctl(descriptor, TUNSETIFF, &request);
}

int clinux_tun_get_interface(int descriptor, char *name, short *flags) {
    struct ifreq request = request_for("");
    int result = ioctl(descriptor, TUNGETIFF, &request);
    if (result == 0) {
        memcpy(name, request.ifr_name, IFNAMSIZ);
        name[IFNAMSIZ - 1] = 0;
        *flags = request.ifr_flags;
    }
    return result;
}

int clinux_tun_get_namespace(int descriptor) { return ioctl(descriptor, TUNGETDEVNETNS); }

int clinux_tun_set_header_size(int descriptor, int size) { return ioctl(descriptor, TUNSETVNETHDRSZ, &size); }

int clinux_tun_get_header_size(int descriptor) {
    int size = 0;
    return ioctl(descriptor, TUNGETVNETHDRSZ, &size) < 0 ? -1 : size;
}

int clinux_tun_set_offloads(int descriptor, unsigned int offloads) {
    return ioctl(descriptor, TUNSETOFFLOAD, (unsigned long)offloads);
}

int clinux_interface_get_mtu(int socket, const char *name) {
    struct ifreq request = request_for(name);
    return ioctl(socket, SIOCGIFMTU, &request) < 0 ? -1 : request.ifr_mtu;
}

int clinux_interface_set_mtu(int socket, const char *name, int mtu) {
    struct ifreq request = request_for(name);
    request.ifr_mtu = mtu;
    return ioctl(socket, SIOCSIFMTU, &request);
}

int clinux_interface_set_transmit_queue_length(int socket, const char *name, int length) {
    struct ifreq request = request_for(name);
    request.ifr_qlen = length;
    return ioctl(socket, SIOCSIFTXQLEN, &request);
}

int clinux_interface_get_transmit_queue_length(int socket, const char *name) {
    struct ifreq request = request_for(name);
    return ioctl(socket, SIOCGIFTXQLEN, &request) < 0 ? -1 : request.ifr_qlen;
}

int clinux_interface_get_flags(int socket, const char *name) {
    struct ifreq request = request_for(name);
    return ioctl(socket, SIOCGIFFLAGS, &request) < 0 ? -1 : (unsigned short)request.ifr_flags;
}

int clinux_interface_set_flags(int socket, const char *name, short flags) {
    struct ifreq request = request_for(name);
    request.ifr_flags = flags;
    return ioctl(socket, SIOCSIFFLAGS, &request);
}

int clinux_thread_start_detached(size_t stack_length, void *(*start)(void *), void *argument) {
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0) return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack_length);
    pthread_t thread;
    error = pthread_create(&thread, &attributes, start, argument);
    pthread_attr_destroy(&attributes);
    return error;
}
