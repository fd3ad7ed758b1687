import Ground

/// The reason why a connection ends, the last frame on it; see "GOODBYE" in <doc:PeerProtocol>.
package struct Goodbye: Hashable, Sendable {
    /// The reason.
    package var code: Code
    /// An explanation for operators; at most ``PeerProtocol/textBytesMax`` bytes are sent.
    package var text: String

    /// The code of a reason; unknown codes are preserved.
    ///
    /// The codes of a ``CloseReason`` are its raw values.
    package struct Code: RawRepresentable, Hashable, Sendable {
        /// The code on the wire.
        package let rawValue: UInt16

        /// Creates a code, known or not.
        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// Creates the code of the membership's reason.
        package init(_ reason: CloseReason) {
            rawValue = reason.rawValue
        }

        /// The two sides have no common version.
        package static let version = Code(rawValue: 2)
        /// The receiver violated the protocol.
        package static let protocolFault = Code(rawValue: 5)
        /// The receiver sends more queries than the sender can handle.
        package static let overloaded = Code(rawValue: 6)
    }

    /// Creates a goodbye from its parts.
    package init(_ code: Code, _ text: String = "") {
        self.code = code
        self.text = text
    }

    private enum Tag {
        static let text: UInt16 = 1
    }

    private static let fixedBytes = 4

    /// The encoded frame.
    package var frame: [UInt8] {
        var writer = StructureWriter.payload
        writer.put(code.rawValue)
        writer.endFixedPart()
        writer.putField(Tag.text, unlessEmpty: text.peerText)
        guard let frame = try? writer.frame(.goodbye) else {
            preconditionFailure("a GOODBYE that is longer than a frame")
        }
        return frame
    }

    /// Decodes the payload of a GOODBYE.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``.
    package init(payload: Span<UInt8>) throws(PeerFault) {
        var structure = try StructureReader(payload, fixedBytes: Self.fixedBytes, in: .goodbye)
        code = Code(rawValue: payload.little16(at: 2))
        text = ""
        if let range = try structure.last(payload, Tag.text) { text = payload.peerText(range) }
    }
}

extension Goodbye {
    /// Creates the goodbye to a peer whose connection is closed for `reason`, with the usual
    /// explanation unless another is given.
    package init(_ reason: CloseReason, _ text: String? = nil) {
        let usual =
            switch reason {
            case .redundant: "another connection between the nodes is used"
            case .selfDial: "the process connected to itself"
            case .silent: "no response to a ping"
            case .dead: "believed dead; it is dialled again"
            case .superseded: "a newer process of the node has connected"
            case .duplicateIdentity: "another live process has the same node id"
            case .clusterFull: "the cluster has the maximum number of members"
            case .leaving: "the node has left"
            }
        self.init(Code(reason), text ?? usual)
    }
}

extension CloseReason {
    /// Creates the membership's close reason from the peer's code; `nil` for any other code, with
    /// which the connection counts as broken.
    package init?(_ code: Goodbye.Code) {
        self.init(rawValue: code.rawValue)
    }
}
