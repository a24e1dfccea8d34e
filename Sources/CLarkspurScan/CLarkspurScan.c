#include "CLarkspurScan.h"
