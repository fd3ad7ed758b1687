import Ground

/// The reason why a connection ends, the last frame on it; see "GOODBYE" in <doc:PeerProtocol>.
package struct Goodbye: Hashable, Sendable {
    /// The reason.
    package var code: Code
    /// An explanation for operators; at most ``PeerProtocol/textBytesMax`` bytes are sent.
    package var text: String

    /// The code of a reason; unknown codes are preserved.
    package struct Code: RawRepresentable, Hashable, Sendable {
        /// The code on the wire.
        package let rawValue: UInt16

        /// Creates a code, known or not.
        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The sender stops.
        package static let leaving = Code(rawValue: 1)
        /// The two sides have no common version.
        package static let version = Code(rawValue: 2)
        /// Another live process has the receiver's node id.
        package static let duplicateIdentity = Code(rawValue: 3)
        /// Another connection between the two is used instead.
        package static let superseded = Code(rawValue: 4)
        /// The receiver violated the protocol.
        package static let protocolFault = Code(rawValue: 5)
        /// The receiver sends more queries than the sender can handle.
        package static let overloaded = Code(rawValue: 6)
        /// Both ends are one process.
        package static let selfConnection = Code(rawValue: 7)
        /// The receiver has not responded for long; another connection may work better.
        package static let silent = Code(rawValue: 8)
        /// The receiver is believed dead, and dialled anew.
        package static let believedDead = Code(rawValue: 9)
        /// A newer process of the receiver's node has replaced it.
        package static let newerProcess = Code(rawValue: 10)
        /// The cluster has the maximum number of members.
        package static let clusterFull = Code(rawValue: 11)
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
    package init(payload: Span<UInt8>) throws(PeerFault) {
        var structure = try StructureReader(payload, fixedBytes: Self.fixedBytes, in: .goodbye)
        code = Code(rawValue: payload.little16(at: 2))
        text = ""
        while let field = try structure.next(payload) {
            if field.tag == Tag.text { text = payload.peerText(field.range) }
        }
    }
}

extension Goodbye {
    /// Creates the goodbye to a peer whose connection is closed for `reason`.
    package init(_ reason: CloseReason) {
        let text =
            switch reason {
            case .redundant: "another connection between the two is used"
            case .selfDial: "this is the process that dialled"
            case .silent: "no answer to a ping"
            case .dead: "believed dead, dialled anew"
            case .superseded: "a newer process of the node is here"
            case .duplicateIdentity: "another live process has the same node id"
            case .clusterFull: "the cluster has all the members it may have"
            case .leaving: "the node has left"
            }
        self.init(Code(rawValue: reason.rawValue), text)
    }
}

extension CloseReason {
    /// Creates the membership's close reason from the peer's code; `nil` for protocol faults, which
    /// count as a broken connection.
    package init?(_ code: Goodbye.Code) {
        self.init(rawValue: code.rawValue)
    }
}
