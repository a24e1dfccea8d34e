// There is nothing to call: in a program that links this target, ThreadSanitizer sees the ordering of a contended
// Mutex, and of waking a task that has not yet suspended.
//
// A program's own definition of a symbol takes precedence over a library's. The functions here call the library's, and
// report their ordering. Nothing is suppressed.
#pragma once
