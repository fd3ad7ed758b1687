import Ground

/// What stands before every payload: 12 bytes that say what follows, how much of it, and on which
/// stream.
package struct PeerFrameHeader: Hashable, Sendable {
    package let kind: PeerFrameKind
    /// 0 for what concerns the connection.
    package let stream: UInt32
    /// Within the limit of ``kind``.
    package let payloadBytes: Int

    /// Size in bytes.
    package static let bytesCount = 12

    /// A head to be written; `payloadBytes` is within the limit of `kind`.
    package init(_ kind: PeerFrameKind, stream: UInt32, payloadBytes: Int) {
        precondition(
            payloadBytes <= kind.payloadBytesMax, "\(payloadBytes) bytes in a frame of \(kind)")
        self.kind = kind
        self.stream = stream
        self.payloadBytes = payloadBytes
    }

    /// The head that these bytes begin with, of which there must be ``bytesCount``.
    ///
    /// - Throws: ``PeerFault/tooLong(_:)`` if the payload is longer than frames of its kind may be;
    ///   then not a byte of it is to be waited for.
    package init(_ bytes: Span<UInt8>) throws(PeerFault) {
        let count = bytes.little32(at: 0)
        kind = PeerFrameKind(rawValue: bytes[4])
        stream = bytes.little32(at: 8)
        guard count <= UInt32(kind.payloadBytesMax) else {
            throw .tooLong(kind == .data ? .data : .payload)
        }
        payloadBytes = Int(count)
    }

    /// As it is written; flags and what is reserved are zeros.
    package var bytes: InlineArray<12, UInt8> {
        let count = UInt32(payloadBytes)
        return [
            UInt8(truncatingIfNeeded: count), UInt8(truncatingIfNeeded: count >> 8),
            UInt8(truncatingIfNeeded: count >> 16), UInt8(truncatingIfNeeded: count >> 24),
            kind.rawValue, 0, 0, 0,
            UInt8(truncatingIfNeeded: stream), UInt8(truncatingIfNeeded: stream >> 8),
            UInt8(truncatingIfNeeded: stream >> 16), UInt8(truncatingIfNeeded: stream >> 24),
        ]
    }
}
