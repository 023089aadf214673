#pragma once
// Constants and functions of Linux headers that Swift cannot import as they are: macros with casts, ioctl numbers, and
// what the C library shows only with _GNU_SOURCE. Nothing here holds state or decides anything.
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>

// Numbers that headers older than Linux 6.2 and 6.3 lack; they are part of the kernel's interface.
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

// One entry of a batch: the layout of struct mmsghdr (asserted in CLinux.c).
struct clinux_message {
    struct msghdr header;
    unsigned int length;
};

int clinux_recvmmsg(int descriptor, struct clinux_message *messages, unsigned int count);
int clinux_sendmmsg(int descriptor, struct clinux_message *messages, unsigned int count);

// The source address and interface of an IPv6 datagram: the layout of struct in6_pktinfo (asserted in CLinux.c).
struct clinux_in6_pktinfo {
    struct in6_addr address;
    uint32_t interface_index;
};

int clinux_accept4(int descriptor, int flags);
int clinux_pipe2(int descriptors[2], int flags);
int clinux_setns_net(int descriptor);
int clinux_unshare_net(void);
// Lets go of the memory of the program's and its libraries' code; what runs again is read from the files again.
void clinux_release_code(void);
// A descriptor that becomes readable when a process ends; −1 with errno.
int clinux_pidfd_open(int process);
// How many processors the process may run on; −1 with errno.
int clinux_processor_count(void);
// Starts a thread with a stack of this many bytes that nobody waits for. Returns 0 or an error number.
int clinux_thread_start_detached(size_t stack_length, void *(*start)(void *), void *argument);
int clinux_spawn_set_working_directory(posix_spawn_file_actions_t *actions, const char *path);
int clinux_spawn_flag_new_session(void);
// The message for an error number: a static string, or null when there is no such number.
const char *clinux_error_description(int error);
// The name of an error number, "EPERM" for one: a static string, or null when there is no such number.
const char *clinux_error_name(int error);

// TUN requests, by the name of the ioctl. All return −1 with errno.
int clinux_tun_set_interface(int descriptor, const char *name, short flags);
// Writes the current name of the device to `name` (IFNAMSIZ bytes) and its flags.
int clinux_tun_get_interface(int descriptor, char *name, short *flags);
// Opens the network namespace that the device is in at present.
int clinux_tun_get_namespace(int descriptor);
// The size in bytes of the virtio header before each packet of a device with IFF_VNET_HDR.
int clinux_tun_set_header_size(int descriptor, int size);
int clinux_tun_get_header_size(int descriptor);
// Which packets the kernel may leave unfinished (TUN_F_…): without checksum, not yet cut into segments.
int clinux_tun_set_offloads(int descriptor, unsigned int offloads);

// Requests about an interface by name, through any socket of its namespace. −1 with errno.
int clinux_interface_get_mtu(int socket, const char *name);
int clinux_interface_set_mtu(int socket, const char *name, int mtu);
int clinux_interface_set_transmit_queue_length(int socket, const char *name, int length);
int clinux_interface_get_transmit_queue_length(int socket, const char *name);
int clinux_interface_get_flags(int socket, const char *name);
int clinux_interface_set_flags(int socket, const char *name, short flags);
