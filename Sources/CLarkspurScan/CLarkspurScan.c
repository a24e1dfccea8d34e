#ifdef __linux__
#include "CLarkspurScan.h"
#endif
