// Errors for AddressSanitizer to find.
//
//   TestHelper memory-errors freed     reads freed memory
//   TestHelper memory-errors beyond    reads past the end of an allocation
//   TestHelper memory-errors fine      does neither

func runMemoryErrors(_ arguments: [String]) throws {
  let count = 64
  let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: count)
  bytes.initialize(repeating: 1, count: count)
  let mode = arguments.first ?? ""
  // The index depends on the number of arguments, so that the optimizer cannot fold the access.
  var place = arguments.count > 4 ? 1 : 0
  if mode == "beyond" { place += count }
  if mode == "freed" { bytes.deallocate() }
  print(bytes[place] == 1 ? "read" : "read something else")
  if mode != "freed" { bytes.deallocate() }
}
