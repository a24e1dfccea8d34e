import Foundation
import Larkspur

/// Takes the parts of a form. It is for the block that it is given to, and for as long as that runs.
public protocol AFMultipartFormData {
  /// A file, under its own name and with the type that its extension says. It is read when the form is sent; of what is
  /// appended to it until then nothing is sent.
  ///
  /// - Throws: An error in `AFURLRequestSerializationErrorDomain` if there is no such file, or nobody may read it.
  func appendPart(withFileURL fileURL: URL, name: String) throws

  /// A file, under a name and with a type of your choice.
  func appendPart(withFileURL fileURL: URL, name: String, fileName: String, mimeType: String) throws

  /// The bytes of a stream, as a file. They can be sent once: if the form has to be sent again, after a redirection or a
  /// challenge, the task fails, unless the stream conforms to `NSCopying`.
  ///
  /// - Parameters:
  ///   - inputStream: Opened when it is its turn, and closed after it. Nil is an empty part.
  ///   - length: How many bytes of it are sent. If it has fewer the task fails.
  ///   - mimeType: The type that the part says it has.
  ///   - fileName: The file's name, as the part says it.
  ///   - name: The field's name.
  func appendPart(with inputStream: InputStream?, name: String, fileName: String, length: Int64, mimeType: String)

  /// Bytes, as a file.
  func appendPart(withFileData data: Data, name: String, fileName: String, mimeType: String)

  /// Bytes, as a field.
  func appendPart(withForm data: Data, name: String)

  /// Bytes with header fields of your choice. Fields that are none (RFC 9110 5.1) are left out, line ends in values become
  /// spaces.
  func appendPart(withHeaders headers: [String: String]?, body: Data)

  /// Sends the form more slowly.
  ///
  /// - Parameters:
  ///   - numberOfBytes: How many bytes are taken from the form at a time, at most.
  ///   - delay: In seconds: how long to wait after each. A thread waits.
  func throttleBandwidth(withPacketSize numberOfBytes: UInt, delay: TimeInterval)
}

/// What to throttle to where a network is slow: 16 KiB at a time.
public let kAFUploadStream3GSuggestedPacketSize: UInt = 1024 * 16

/// What to wait after each packet where a network is slow, in seconds.
public let kAFUploadStream3GSuggestedDelay: TimeInterval = 0.2
