#pragma once
// Constants and inline functions of Linux headers that Swift cannot import as they are (macros with casts, ioctl numbers,
// control-message walking). Nothing here holds state or decides anything.
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static inline unsigned long clinux_TUNSETIFF(void) { return TUNSETIFF; }
