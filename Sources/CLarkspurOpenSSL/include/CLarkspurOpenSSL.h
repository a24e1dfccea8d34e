// OpenSSL's headers, and what Swift cannot see of them: macros, variadic calls, callbacks.
#ifndef LARKSPUR_OPENSSL_H
#define LARKSPUR_OPENSSL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#endif
