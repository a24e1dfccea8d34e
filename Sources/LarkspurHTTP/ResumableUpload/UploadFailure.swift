/// The reason for which a resumable upload ends without the program's response.
package enum UploadFailure: Error, Hashable, Sendable {
  /// The connection has failed, and the owner knows the error. With an upload resource, the upload can continue later.
  case connection
  /// The upload resource has answered with this status, which is not retried or was received too often.
  case status(Int)
  /// The upload resource does not exist (404) or no longer (410).
  case resourceGone(status: Int)
  /// The upload resource does not state its offset.
  case noOffset
  /// The server's offset is greater than the size of the representation.
  case offsetBeyondEnd(Int)
  /// The server's offset is greater than the number of bytes that have been sent.
  case offsetBeyondSent(Int)
  /// The server's offset is smaller than one that the server has acknowledged before.
  case offsetDecreased(Int)
  /// After a successful request the server's offset is not the end of the request's content.
  case offsetMismatch(Int)
  /// The upload resource expects a representation of this size in bytes.
  case lengthMismatch(Int)
  /// The server says that the upload is complete, and has not received all bytes.
  case completedTooEarly
  /// All bytes have been sent with success, and the server still says that the upload is not complete.
  case neverCompleted
  /// The representation, or each part of it, is outside of the limits.
  case limits(UploadLimits)
  /// The server has accepted a first part, and does not state where to append the rest.
  case noLocation
  /// The server has named two upload resources for one request.
  case locationChanged
  /// The upload resource sends the client on too often, or to a URL that it cannot use.
  case redirection
  /// The upload cannot continue at its upload resource, which has another origin than the program's request: the owner
  /// has refused it, or it is not protected by TLS.
  case otherOrigin
  /// The lifetime of the upload resource has passed, or would pass before the next try.
  case expired
  /// The file has changed since the upload was started.
  case fileChanged
}
