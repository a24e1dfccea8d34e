import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurIO

/// Standard output, for the messages of a server.
struct SocketOutput {
  private let file: FileOutput
  private let isTerminal = OpenFile.standardOutput.isTerminal

  /// - Parameter deadline: The deadline of all writes.
  init(until deadline: Deadline) throws(CommandFailure) { file = try FileOutput(path: nil, deadline: deadline) }

  /// Writes a message. Returns when the output has taken all of it.
  func write(_ message: URLSessionWebSocketTask.Message) throws(CommandFailure) {
    try file.write(Self.bytes(of: message, onTerminal: isTerminal).span)
  }

  private static func bytes(of message: URLSessionWebSocketTask.Message, onTerminal: Bool) -> [UInt8] {
    switch message {
    case .string(let text):
      let line = onTerminal ? Format.visible(text.utf8) : text
      return Array(line.utf8) + [UInt8(ascii: "\n")]
    case .data(let data): return onTerminal ? Array(Format.hexadecimal(data).utf8) : Array(data)
    }
  }
}
