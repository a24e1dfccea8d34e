import Foundation
import Larkspur

/// Collects the parts of a multipart form. Use it only in the block that receives it, and only until the block returns.
public protocol AFMultipartFormData {
  /// Appends a file, with its own name and the type of its extension. The file is read when the form is sent, up to the
  /// length that it has now: bytes that are appended later are not sent.
  ///
  /// - Throws: An error in `AFURLRequestSerializationErrorDomain` if there is no such file, or it cannot be read.
  func appendPart(withFileURL fileURL: URL, name: String) throws

  /// Appends a file, with the given name and type.
  func appendPart(withFileURL fileURL: URL, name: String, fileName: String, mimeType: String) throws

  /// Appends the bytes of a stream as a file. They can be sent only once: if the form has to be sent again, after a
  /// redirection or a challenge, the task fails, unless the stream conforms to `NSCopying`.
  ///
  /// - Parameters:
  ///   - inputStream: The stream. It is opened when its part is sent, and closed afterwards. `nil` gives an empty part.
  ///   - length: Number of bytes to send. If the stream has fewer, the task fails.
  ///   - mimeType: The type in the part's header.
  ///   - fileName: The file's name in the part's header.
  ///   - name: The field's name.
  func appendPart(with inputStream: InputStream?, name: String, fileName: String, length: Int64, mimeType: String)

  /// Appends bytes as a file.
  func appendPart(withFileData data: Data, name: String, fileName: String, mimeType: String)

  /// Appends bytes as a field.
  func appendPart(withForm data: Data, name: String)

  /// Appends bytes with the given header fields. Names that are not valid (RFC 9110 5.1) are skipped; line ends in
  /// values become spaces.
  func appendPart(withHeaders headers: [String: String]?, body: Data)

  /// Limits the rate at which the form is sent.
  ///
  /// - Parameters:
  ///   - numberOfBytes: Maximum number of bytes to read from the form at a time.
  ///   - delay: Time to wait after each read, in seconds. The wait blocks a thread.
  func throttleBandwidth(withPacketSize numberOfBytes: UInt, delay: TimeInterval)
}

/// The suggested packet size for slow networks: 16 KiB.
public let kAFUploadStream3GSuggestedPacketSize: UInt = 1024 * 16

/// The suggested delay after each packet for slow networks, in seconds.
public let kAFUploadStream3GSuggestedDelay: TimeInterval = 0.2
