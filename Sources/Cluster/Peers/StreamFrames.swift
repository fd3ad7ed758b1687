import Ground

/// The body is whole; see "END" in <doc:PeerProtocol>.
package struct StreamEnd: Hashable, Sendable {
    /// Bytes of the body.
    package var size: UInt64

    package init(size: UInt64) {
        self.size = size
    }

    private static let fixedBytes = 12

    /// The frame.
    package func frame(stream: UInt32) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(UInt16(0))
        writer.put(size)
        return writer.smallFrame(.end, stream: stream)
    }

    /// The END in `payload`.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``.
    package init(payload: Span<UInt8>) throws(PeerFault) {
        try PeerStructure.check(payload, fixedBytes: Self.fixedBytes, in: .end)
        size = payload.little64(at: 4)
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
        package static let broken = Code(rawValue: 2)
        /// The body is longer than the answerer hands on.
        package static let tooLarge = Code(rawValue: 3)
        /// The entry was invalidated while it was sent.
        package static let invalidated = Code(rawValue: 4)
        /// The answerer has too much to do.
        package static let overloaded = Code(rawValue: 5)
        /// The reader takes the bytes too slowly.
        package static let stalled = Code(rawValue: 6)
    }

    /// The frame.
    package static func frame(_ code: Code, stream: UInt32) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(code.rawValue)
        return writer.smallFrame(.reset, stream: stream)
    }

    /// The code in `payload`.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> Code {
        try PeerStructure.check(payload, fixedBytes: fixedBytes, in: .reset)
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
        return writer.smallFrame(.credit, stream: stream)
    }

    /// The bytes granted in `payload`.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``, or ``PeerFault/empty(_:)`` for none.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> UInt32 {
        try PeerStructure.check(payload, fixedBytes: fixedBytes, in: .credit)
        let count = payload.little32(at: 4)
        guard count > 0 else { throw .empty(.credit) }
        return count
    }
}

extension PeerStructure {
    /// Throws unless `payload` is a structure, of whose fields none is known.
    static func check(
        _ payload: Span<UInt8>, fixedBytes: Int, in kind: PeerFrameKind
    ) throws(PeerFault) {
        var structure = try PeerStructure(payload, fixedBytes: fixedBytes, in: kind)
        while try structure.next(payload) != nil {}
    }
}

extension StructureWriter {
    /// A frame of a fixed part alone.
    fileprivate consuming func smallFrame(_ kind: PeerFrameKind, stream: UInt32) -> [UInt8] {
        endFixedPart()
        guard let frame = try? frame(kind, stream: stream) else {
            preconditionFailure("a fixed part that is longer than a frame")
        }
        return frame
    }
}
