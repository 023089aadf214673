#pragma once
// What Swift needs of OpenSSL 3's libssl. The functions below stand for macros that Swift cannot import.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

static inline int clibssl_set_min_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline int clibssl_set_groups(SSL_CTX *context, const char *groups) {
    return (int)SSL_CTX_set1_groups_list(context, groups);
}

static inline void clibssl_set_options(SSL_CTX *context) {
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}

static inline void clibssl_set_mode(SSL_CTX *context, long mode) { SSL_CTX_set_mode(context, mode); }

static inline void clibssl_clear_mode(SSL_CTX *context, long mode) { SSL_CTX_clear_mode(context, mode); }

static inline int clibssl_set_server_name(SSL *stream, const char *name) {
    return (int)SSL_set_tlsext_host_name(stream, name);
}

// An empty memory BIO means "later", not the end of the stream.
static inline BIO *clibssl_new_memory(void) {
    BIO *memory = BIO_new(BIO_s_mem());
    if (memory) BIO_set_mem_eof_return(memory, -1);
    return memory;
}

static inline void clibssl_clear_memory(BIO *memory) { (void)BIO_reset(memory); }

static inline void clibssl_free(void *memory) { OPENSSL_free(memory); }

static inline int clibssl_certificate_count(const STACK_OF(X509) * certificates) { return sk_X509_num(certificates); }

static inline X509 *clibssl_certificate(const STACK_OF(X509) * certificates, int index) {
    return sk_X509_value(certificates, index);
}

// Picks the first of the server's protocols that the client offers. The argument is the server's list as ALPN has it: its length in
// two bytes, the lower one first, then each protocol with its length in a byte.
static inline int clibssl_select_protocol(
    SSL *stream, const unsigned char **selected, unsigned char *length, const unsigned char *offered,
    unsigned int offered_length, void *argument) {
    (void)stream;
    const unsigned char *list = (const unsigned char *)argument;
    unsigned int list_length = (unsigned int)list[0] | (unsigned int)list[1] << 8;
    unsigned char *found = NULL;
    if (SSL_select_next_proto(&found, length, list + 2, list_length, offered, offered_length) != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *selected = found;
    return SSL_TLSEXT_ERR_OK;
}

static inline void clibssl_set_protocol_selection(SSL_CTX *context, void *list) {
    SSL_CTX_set_alpn_select_cb(context, clibssl_select_protocol, list);
}
