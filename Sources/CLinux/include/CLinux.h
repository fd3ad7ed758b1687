// What Swift's Glibc module does not show. Macros and declarations only: no logic.
#ifndef CLINUX_H
#define CLINUX_H

#include <malloc.h>

#endif
