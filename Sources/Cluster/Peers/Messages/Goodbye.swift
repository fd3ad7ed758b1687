import Ground

/// Why a connection ends: the last frame on it; see "GOODBYE" in <doc:PeerProtocol>.
package struct Goodbye: Hashable, Sendable {
    package var code: Code
    /// For operators; at most ``PeerProtocol/textBytesMax`` bytes of it are sent.
    package var text: String

    /// What it is about; one that this version does not know is kept as it is.
    package struct Code: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The sender stops.
        package static let leaving = Code(rawValue: 1)
        /// There is no version that both speak.
        package static let version = Code(rawValue: 2)
        /// Another live process has the receiver's node id.
        package static let duplicateIdentity = Code(rawValue: 3)
        /// Another connection between the two is used instead.
        package static let superseded = Code(rawValue: 4)
        /// The receiver broke the rules of this protocol.
        package static let protocolFault = Code(rawValue: 5)
        /// The receiver asks for more than the sender can do.
        package static let overloaded = Code(rawValue: 6)
        /// Both ends are one process.
        package static let selfConnection = Code(rawValue: 7)
        /// The receiver has not answered for long; another connection may fare better.
        package static let silent = Code(rawValue: 8)
        /// The receiver is believed dead, and dialled anew.
        package static let believedDead = Code(rawValue: 9)
        /// A newer process of the receiver's node has taken its place.
        package static let newerProcess = Code(rawValue: 10)
        /// The cluster has as many members as it may have.
        package static let clusterFull = Code(rawValue: 11)
    }

    package init(_ code: Code, _ text: String = "") {
        self.code = code
        self.text = text
    }

    private enum Tag {
        static let text: UInt16 = 1
    }

    private static let fixedBytes = 4

    /// The frame.
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

    /// The GOODBYE in `payload`.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``.
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
    /// What is said to a peer whose connection is closed for `reason`.
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
    /// Why the peer closed the connection, as far as membership has to know; nil for faults, which
    /// are as good as a break.
    package init?(_ code: Goodbye.Code) {
        self.init(rawValue: code.rawValue)
    }
}
