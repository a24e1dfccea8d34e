// Nothing to call: a program that links this has ThreadSanitizer see what a contended Mutex orders, and what the waking of a
// task that has not suspended yet does.
//
// A program's own definition of a symbol goes before the library's: these do what the library's do, and say what it orders.
// Nothing is suppressed.
#pragma once
