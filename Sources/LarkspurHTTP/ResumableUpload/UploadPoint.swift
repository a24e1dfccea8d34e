/// The state of an upload that is needed to continue it, in this or another process.
package struct UploadPoint: Hashable, Sendable {
  package var version: ResumableUploadVersion
  /// The absolute URL of the upload resource.
  package var resource: String
  /// Size of the representation in bytes.
  package var length: Int
  /// The highest offset that the server has acknowledged. The server names the offset to continue from; this one only
  /// shows a server that has lost bytes.
  package var acknowledged: Int
  /// Number of bytes from the start, of which at least a part of each has been given to a connection: no server can
  /// have received more from this client.
  package var sent: Int
  package var limits: UploadLimits
  /// The time at which the upload resource ends, in seconds since 1970, or `nil` if the server has not named it.
  package var expiry: Double?

  package init(
    version: ResumableUploadVersion, resource: String, length: Int, acknowledged: Int = 0, sent: Int = 0,
    limits: UploadLimits = UploadLimits(), expiry: Double? = nil
  ) {
    self.version = version
    self.resource = resource
    self.length = length
    self.acknowledged = acknowledged
    self.sent = sent
    self.limits = limits
    self.expiry = expiry
  }

  /// Whether the numbers contradict neither each other nor the protocol.
  var isConsistent: Bool {
    0...StructuredItem.integerMax ~= length && 0...length ~= sent && 0...length ~= acknowledged
      && expiry?.isFinite != false
  }
}
