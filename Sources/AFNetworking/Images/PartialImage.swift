import Dispatch
import Foundation
import Synchronization

/// Gives the pieces of an image to an incremental decoder. The pieces are decoded on a dedicated queue, in order.
///
/// ```
///   collecting --the head is known and within the limits--> decoding
///       '---------the head exceeds the limits--------------> refused
///   decoding --an error--> refused
/// ```
///
/// Bytes whose format is not known are the decoder's to judge: they are decoded, too.
final class PartialImage: Sendable {
  /// The state. Only one piece is decoded at a time, so that the decoder need not be `Sendable`.
  private struct State: @unchecked Sendable {
    var collected = Data()
    /// The number of bytes from which the head is read again. It doubles, so that the time stays in proportion to the
    /// bytes, also for a head that never ends.
    var nextCount = 1
    var decoder: (any AFIncrementalImageDecoder)?
    var isRefused = false
  }

  private let decoding: any AFIncrementalImageDecoding
  private let scale: CGFloat
  private let pixelCountMax: Int
  private let deliver: @Sendable (any AFDecodedImage) -> Void
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "com.alamofire.imagedownloader.partial", target: .global())

  /// Creates the decoding of one image.
  ///
  /// - Parameter deliver: Receives each image that the decoder returns, on a queue.
  init(
    _ decoding: any AFIncrementalImageDecoding, scale: CGFloat, pixelCountMax: Int,
    deliver: @escaping @Sendable (any AFDecodedImage) -> Void
  ) {
    self.decoding = decoding
    self.scale = scale
    self.pixelCountMax = pixelCountMax
    self.deliver = deliver
  }

  /// Decodes a piece, later.
  func append(_ piece: Data) { queue.async { [self] in if let image = decode(piece) { deliver(image) } } }

  /// Decodes a piece now.
  ///
  /// - Returns: The image as far as it is known, if there is something new to show.
  func decode(_ piece: Data) -> (any AFDecodedImage)? {
    // Taken out rather than copied, so that `append` below does not copy the collected bytes.
    var state = self.state.withLock { exchange(&$0, with: State()) }
    defer { self.state.withLock { $0 = state } }
    guard !state.isRefused else { return nil }
    var bytes = piece
    if state.decoder == nil {
      state.collected.append(piece)
      guard state.collected.count >= state.nextCount else { return nil }
      state.nextCount = 2 * state.collected.count
      do throws(AFImageError) {
        _ = try ImageHead.read(state.collected.span, pixelCountMax: pixelCountMax)
      } catch {
        switch error {
        case .truncated: return nil
        case .unknownFormat: break
        default:
          state.isRefused = true
          state.collected = Data()
          return nil
        }
      }
      state.decoder = decoding.makeIncrementalDecoder(scale: scale)
      bytes = exchange(&state.collected, with: Data())
    }
    do {
      return try state.decoder?.append(bytes)
    } catch {
      state.isRefused = true
      state.decoder = nil
      return nil
    }
  }
}
