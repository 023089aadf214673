#pragma once
// What Swift needs of OpenSSL 3's libssl. The functions below stand for macros that Swift cannot import.
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
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

// Sessions are in the clients' tickets; none is kept here.
static inline void clibssl_keep_no_sessions(SSL_CTX *context) {
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

// Draws new keys for tickets: a name of 16 bytes, and 32 for each of HMAC and AES.
static inline int clibssl_renew_ticket_keys(SSL_CTX *context) {
    unsigned char keys[80];
    int result = RAND_bytes(keys, sizeof(keys)) == 1 && SSL_CTX_set_tlsext_ticket_keys(context, keys, sizeof(keys)) == 1;
    OPENSSL_cleanse(keys, sizeof(keys));
    return result;
}

static inline int clibssl_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

// Nobody is there to be asked for a passphrase.
static inline int clibssl_no_passphrase(char *buffer, int size, int is_writing, void *argument) {
    (void)buffer, (void)size, (void)is_writing, (void)argument;
    return -1;
}

static inline X509 *clibssl_next_certificate(BIO *input) {
    return PEM_read_bio_X509(input, NULL, clibssl_no_passphrase, NULL);
}

static inline EVP_PKEY *clibssl_next_key(BIO *input) {
    return PEM_read_bio_PrivateKey(input, NULL, clibssl_no_passphrase, NULL);
}

// Whether the last error is that there is nothing in PEM form any more.
static inline int clibssl_is_at_end(void) {
    unsigned long error = ERR_peek_last_error();
    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}
