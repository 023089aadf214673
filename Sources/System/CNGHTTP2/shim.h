#pragma once
// What Swift needs of nghttp2: sessions of HTTP/2 between buffers in memory. It has no I/O of its own.
#include <nghttp2/nghttp2.h>
