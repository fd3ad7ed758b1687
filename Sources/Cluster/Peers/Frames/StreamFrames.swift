import Ground

/// The body is whole; see "END" in <doc:PeerProtocol>.
package struct StreamEnd: Hashable, Sendable {
    /// Bytes of the body.
    package var size: UInt64
    /// The trailer fields for the one client who caused the fetch (RFC 9110 §6.5), each line with
    /// its end; at most ``trailersBytesMax``.
    package var trailers: [UInt8]

    package static let trailersBytesMax = 16 << 10

    /// Trailers that are too long are left out.
    package init(size: UInt64, trailers: [UInt8] = []) {
        self.size = size
        self.trailers = trailers.count > Self.trailersBytesMax ? [] : trailers
    }

    private static let trailersTag: UInt16 = 1

    private static let fixedBytes = 12

    /// The frame.
    package func frame(stream: UInt32) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(UInt16(0))
        writer.put(size)
        writer.endFixedPart()
        writer.putField(Self.trailersTag, unlessEmpty: trailers)
        return writer.smallFrame(.end, stream: stream)
    }

    /// The END in `payload`.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``.
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

/// A stream is given up by either side; see "RESET" in <doc:PeerProtocol>.
package enum StreamReset {
    private static let fixedBytes = 4

    /// Why; one that this version does not know is kept as it is.
    package struct Code: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The asker wants it no more; also the answer to that.
        package static let cancelled = Code(rawValue: 1)
        /// What the answerer reads from ended before the body was whole.
        package static let incompleteBody = Code(rawValue: 2)
        /// The body is longer than the answerer hands on.
        package static let tooLarge = Code(rawValue: 3)
        /// The entry was invalidated while it was sent.
        package static let invalidated = Code(rawValue: 4)
        /// The answerer has too much to do.
        package static let overloaded = Code(rawValue: 5)
        /// The reader takes the bytes too slowly.
        package static let slowReader = Code(rawValue: 6)
    }

    /// The frame.
    package static func frame(_ code: Code, stream: UInt32) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(code.rawValue)
        writer.endFixedPart()
        return writer.smallFrame(.reset, stream: stream)
    }

    /// The code in `payload`.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> Code {
        try StructureReader.validate(payload, fixedBytes: fixedBytes, in: .reset)
        return Code(rawValue: payload.little16(at: 2))
    }
}

/// So many bytes more may be sent on a stream; see "CREDIT" in <doc:PeerProtocol>.
package enum StreamCredit {
    private static let fixedBytes = 8

    /// The frame.
    package static func frame(_ bytesCount: UInt32, stream: UInt32) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(UInt16(0))
        writer.put(bytesCount)
        writer.endFixedPart()
        return writer.smallFrame(.credit, stream: stream)
    }

    /// The bytes granted in `payload`.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``, or ``PeerFault/empty(_:)`` for none.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> UInt32 {
        try StructureReader.validate(payload, fixedBytes: fixedBytes, in: .credit)
        let count = payload.little32(at: 4)
        guard count > 0 else { throw .emptyFrame(.credit) }
        return count
    }
}

extension StructureReader {
    /// Throws unless `payload` is a structure, of whose fields none is known.
    static func validate(
        _ payload: Span<UInt8>, fixedBytes: Int, in kind: PeerFrameKind
    ) throws(PeerFault) {
        var structure = try StructureReader(payload, fixedBytes: fixedBytes, in: kind)
        while try structure.next(payload) != nil {}
    }
}

extension StructureWriter {
    /// A frame that is known to be short enough.
    fileprivate consuming func smallFrame(_ kind: PeerFrameKind, stream: UInt32) -> [UInt8] {
        guard let frame = try? frame(kind, stream: stream) else {
            preconditionFailure("a small frame that is too long")
        }
        return frame
    }
}
