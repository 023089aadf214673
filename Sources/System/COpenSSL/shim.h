#pragma once
// What Swift needs of OpenSSL 3's libcrypto. The functions below stand for macros that Swift cannot import: selections
// made of other macros, and parameter names, to which OpenSSL keeps a pointer.
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

static inline int copenssl_select_key_pair(void) { return EVP_PKEY_KEYPAIR; }
static inline int copenssl_select_public_key(void) { return EVP_PKEY_PUBLIC_KEY; }

static inline OSSL_PARAM copenssl_private_key(const void *bytes, size_t length) {
    return OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, (void *)bytes, length);
}

static inline OSSL_PARAM copenssl_public_key(const void *bytes, size_t length) {
    return OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)bytes, length);
}
