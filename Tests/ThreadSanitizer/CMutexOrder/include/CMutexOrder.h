// Nothing to call: a program that links this has ThreadSanitizer see what a contended Mutex orders.
#pragma once
