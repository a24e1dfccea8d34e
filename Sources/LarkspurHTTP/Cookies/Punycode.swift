/// Makes the ASCII form of labels in other scripts (RFC 3492), for the public suffix list, which has names in their own
/// scripts. Input must be normalized: capitals and compatibility characters outside ASCII are encoded as they are.
public enum Punycode {
  /// Returns the name with the `xn--` form of each label that needs one, or `nil` if such a label is too long.
  public static func asciiName(_ name: some StringProtocol) -> String? {
    if name.utf8.allSatisfy({ $0 < 0x80 }) { return HostName.normal(String(name)) }
    var labels: [String] = []
    for label in name.split(separator: ".", omittingEmptySubsequences: false) {
      if label.utf8.allSatisfy({ $0 < 0x80 }) {
        labels.append(HostName.normal(String(label)))
      } else if let encoded = encode(label) {
        labels.append("xn--" + encoded)
      } else {
        return nil
      }
    }
    return labels.joined(separator: ".")
  }

  /// Encodes one label (RFC 3492 5 and 6.3). Labels of more than 63 characters are refused, so that nothing overflows.
  private static func encode(_ label: some StringProtocol) -> String? {
    let scalars = label.unicodeScalars.map { Int($0.value) }
    guard scalars.count <= HostName.labelBytesMax else { return nil }
    var output = scalars.filter { $0 < 0x80 }.map { UInt8($0) }
    let basicCount = output.count
    if basicCount > 0 { output.append(UInt8(ascii: "-")) }
    var handled = basicCount
    var code = 128
    var delta = 0
    var bias = 72
    while handled < scalars.count {
      guard let next = scalars.lazy.filter({ $0 >= code }).min() else { return nil }
      delta += (next - code) * (handled + 1)
      code = next
      for scalar in scalars {
        if scalar < code { delta += 1 }
        guard scalar == code else { continue }
        write(delta, bias, to: &output)
        bias = adapt(delta, handled + 1, isFirst: handled == basicCount)
        delta = 0
        handled += 1
      }
      delta += 1
      code += 1
    }
    return String(decoding: output, as: UTF8.self)
  }

  private static func write(_ delta: Int, _ bias: Int, to output: inout [UInt8]) {
    var rest = delta
    var position = 36
    while true {
      let threshold = min(max(position - bias, 1), 26)
      guard rest >= threshold else { break }
      output.append(digit(threshold + (rest - threshold) % (36 - threshold)))
      rest = (rest - threshold) / (36 - threshold)
      position += 36
    }
    output.append(digit(rest))
  }

  /// The digits are `a` to `z`, then `0` to `9`.
  private static func digit(_ value: Int) -> UInt8 { UInt8(value < 26 ? value + 97 : value + 22) }

  private static func adapt(_ delta: Int, _ count: Int, isFirst: Bool) -> Int {
    var delta = isFirst ? delta / 700 : delta / 2
    delta += delta / count
    var bias = 0
    while delta > 455 {
      delta /= 35
      bias += 36
    }
    return bias + 36 * delta / (delta + 38)
  }
}
