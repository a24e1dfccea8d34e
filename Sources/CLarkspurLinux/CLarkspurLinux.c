#include "CLarkspurLinux.h"
