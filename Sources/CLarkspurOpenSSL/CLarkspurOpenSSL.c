#include "CLarkspurOpenSSL.h"
