import Ground

/// The end of a complete body; see "END" in <doc:PeerProtocol>.
package struct StreamEnd: Hashable, Sendable {
    /// The length of the body in bytes.
    package var size: UInt64
    /// The trailer section for the client that caused the fetch (RFC 9110 §6.5), each line with its
    /// line end; at most ``trailersBytesMax``.
    package var trailers: [UInt8]

    /// Maximum bytes of the trailer section.
    package static let trailersBytesMax = 16 << 10

    /// Creates an end; a trailer section that is too long is omitted.
    package init(size: UInt64, trailers: [UInt8] = []) {
        self.size = size
        self.trailers = trailers.count > Self.trailersBytesMax ? [] : trailers
    }

    private static let trailersTag: UInt16 = 1

    private static let fixedBytes = 12

    /// Returns the frame.
    package func frame(stream: UInt32) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(UInt16(0))
        writer.put(size)
        writer.endFixedPart()
        writer.putField(Self.trailersTag, unlessEmpty: trailers)
        return writer.smallFrame(.end, stream: stream)
    }

    /// Decodes the payload of an END.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``, or ``PeerFault/tooLong(_:)`` for the trailers.
    package init(payload: Span<UInt8>) throws(PeerFault) {
        var structure = try StructureReader(payload, fixedBytes: Self.fixedBytes, in: .end)
        self.init(size: payload.little64(at: 4))
        while let field = try structure.next(payload) {
            guard field.tag == Self.trailersTag else { continue }
            guard field.range.count <= Self.trailersBytesMax else { throw .tooLong(.payload) }
            trailers = payload.copy(field.range)
        }
    }
}

/// The abort of a stream by either side; see "RESET" in <doc:PeerProtocol>.
package enum StreamReset {
    private static let fixedBytes = 4

    /// The reason of an abort; unknown codes are preserved.
    package struct Code: RawRepresentable, Hashable, Sendable {
        /// The code on the wire.
        package let rawValue: UInt16

        /// Creates a code, known or not.
        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The requester no longer wants the response; also the reply to that.
        package static let cancelled = Code(rawValue: 1)
        /// The responder's source ended before the body was complete.
        package static let incompleteBody = Code(rawValue: 2)
        /// The body exceeds what the responder transfers.
        package static let tooLarge = Code(rawValue: 3)
        /// The entry was invalidated during the transfer.
        package static let invalidated = Code(rawValue: 4)
        /// The responder is overloaded.
        package static let overloaded = Code(rawValue: 5)
        /// The reader consumes the bytes too slowly.
        package static let slowReader = Code(rawValue: 6)
    }

    /// Returns the frame.
    package static func frame(_ code: Code, stream: UInt32) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(code.rawValue)
        writer.endFixedPart()
        return writer.smallFrame(.reset, stream: stream)
    }

    /// Decodes the payload of a RESET.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> Code {
        try StructureReader.validate(payload, fixedBytes: fixedBytes, in: .reset)
        return Code(rawValue: payload.little16(at: 2))
    }
}

/// A grant of further body bytes on a stream; see "CREDIT" in <doc:PeerProtocol>.
package enum StreamCredit {
    private static let fixedBytes = 8

    /// Returns the frame that grants `bytesCount` bytes.
    package static func frame(_ bytesCount: UInt32, stream: UInt32) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(UInt16(0))
        writer.put(bytesCount)
        writer.endFixedPart()
        return writer.smallFrame(.credit, stream: stream)
    }

    /// Decodes the payload of a CREDIT and returns the granted bytes.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``, or ``PeerFault/emptyFrame(_:)`` for no bytes.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> UInt32 {
        try StructureReader.validate(payload, fixedBytes: fixedBytes, in: .credit)
        let count = payload.little32(at: 4)
        guard count > 0 else { throw .emptyFrame(.credit) }
        return count
    }
}

extension StructureReader {
    /// Checks that `payload` is a well-formed structure; its fields are skipped.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``.
    static func validate(
        _ payload: Span<UInt8>, fixedBytes: Int, in kind: PeerFrameKind
    ) throws(PeerFault) {
        var structure = try StructureReader(payload, fixedBytes: fixedBytes, in: kind)
        while try structure.next(payload) != nil {}
    }
}

extension StructureWriter {
    /// Returns a frame that is known to be within the limit.
    fileprivate consuming func smallFrame(_ kind: PeerFrameKind, stream: UInt32) -> [UInt8] {
        guard let frame = try? frame(kind, stream: stream) else {
            preconditionFailure("a small frame that is too long")
        }
        return frame
    }
}
