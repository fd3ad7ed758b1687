#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* Constants that are made of other macros with casts or arguments, which Swift does not see. */
static const unsigned long openssl_name_rfc2253 = XN_FLAG_RFC2253;
static const uint64_t openssl_op_allow_no_dhe_kex = SSL_OP_ALLOW_NO_DHE_KEX;
static const uint64_t openssl_op_cipher_server_preference = SSL_OP_CIPHER_SERVER_PREFERENCE;
static const uint64_t openssl_op_no_compression = SSL_OP_NO_COMPRESSION;
static const uint64_t openssl_op_no_renegotiation = SSL_OP_NO_RENEGOTIATION;
static const uint64_t openssl_op_no_ticket = SSL_OP_NO_TICKET;
static const uint64_t openssl_op_prioritize_chacha = SSL_OP_PRIORITIZE_CHACHA;
