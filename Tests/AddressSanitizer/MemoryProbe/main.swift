// Shows what AddressSanitizer sees: `MemoryProbe freed` reads memory that has been given back, `MemoryProbe beyond` reads
// behind the end of what it has, and `MemoryProbe fine` does neither.

let count = 64
let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: count)
bytes.initialize(repeating: 1, count: count)
let mode = CommandLine.arguments.dropFirst().first ?? ""
// The optimiser must not know.
var place = CommandLine.arguments.count > 5 ? 1 : 0
if mode == "beyond" { place += count }
if mode == "freed" { bytes.deallocate() }
print(bytes[place] == 1 ? "read" : "read something else")
if mode != "freed" { bytes.deallocate() }
