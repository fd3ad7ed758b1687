package import Ground

/// A node's summary of itself for the operators of its peers; see "SUMMARY" in <doc:PeerProtocol>.
///
/// Nothing that a node decides depends on it.
package struct MemberSummary: Hashable, Sendable {
    /// The node's name.
    package var name: String
    /// The base URL at which operators reach the node's admin port; empty if none is announced.
    package var adminURL = ""
    /// The version of the program.
    package var version: String
    /// The node's state, the worst of its conditions.
    package var state = State.ready
    /// The sentence about the worst condition; empty if there is none.
    package var condition = ""
    /// The counters since the node's start, and its use of memory and disk.
    package var counters = Counters()
    /// The settings that must be the same on all nodes; at most ``settingsMax``.
    package var settings: [SharedSetting] = []

    /// A node's state.
    package enum State: UInt8, CaseIterable, Sendable {
        case ready = 1
        case warning = 2
        case critical = 3
    }

    /// The counters of a node.
    package struct Counters: Hashable, Sendable {
        /// Responses to clients.
        package var requests: UInt64 = 0
        /// Responses served from the cache without a fetch.
        package var hits: UInt64 = 0
        /// Responses that the cache could have served.
        package var cacheable: UInt64 = 0
        /// Responses with a status of 500 or above.
        package var serverErrors: UInt64 = 0
        /// Fetches from origins.
        package var originFetches: UInt64 = 0
        /// Fetches that failed.
        package var originFailures: UInt64 = 0
        /// Body bytes sent to clients.
        package var sentBytes: UInt64 = 0
        /// Bytes received from origins.
        package var originBytes: UInt64 = 0
        /// Bytes of memory in use by the memory tier.
        package var memoryUsedBytes: UInt64 = 0
        /// Bytes of disk in use by the disk tier.
        package var diskUsedBytes: UInt64 = 0

        /// Creates counters of zero.
        package init() {}
    }

    /// Creates the summary of a node without conditions or counts.
    package init(name: String, version: String) {
        self.name = name
        self.version = version
    }

    /// The interval at which a node sends its summary.
    package static let interval = Interval.seconds(10)
    /// Maximum number of settings in a summary.
    package static let settingsMax = 64
}

/// A setting that must be the same on all nodes of a cluster, as a node announces it.
package struct SharedSetting: Hashable, Sendable {
    /// The name of the setting.
    package var name: String
    /// The digest of the value.
    package var digest: UInt64
    /// The beginning of the value for operators; empty if the digest covers more than one value,
    /// and is then comparable only between nodes of one version.
    package var text = ""

    /// Maximum bytes of a name or a text.
    package static let textBytesMax = 64

    /// Creates a setting from its digest alone.
    package init(_ name: String, digest: UInt64) {
        self.name = name
        self.digest = digest
    }

    /// Creates a setting from the texts of its value, whose order does not matter.
    package init(_ name: String, texts: [String]) {
        let sorted = texts.sorted()
        let whole = sorted.joined(separator: "\n")
        self.init(name, digest: XXH64.hash(Array(whole.utf8).span, seed: 0))
        text = texts.isEmpty ? "none" : sorted.joined(separator: " ")
    }
}

extension MemberSummary {
    /// Returns the names of those of this node's settings `own` that the sender of this summary
    /// announces with another value; `version` is this node's.
    ///
    /// Settings that only one of the nodes announces are not compared.
    package func differences(from own: [SharedSetting], version: String) -> [String] {
        own.filter { setting in
            guard let theirs = settings.last(where: { $0.name == setting.name }) else {
                return false
            }
            let isComparable = self.version == version || !setting.text.isEmpty
            return isComparable && theirs.digest != setting.digest
        }.map(\.name)
    }
}

// MARK: Encoding

extension MemberSummary {
    private enum Tag {
        static let name: UInt16 = 1
        static let adminURL: UInt16 = 2
        static let version: UInt16 = 3
        static let condition: UInt16 = 4
        static let setting: UInt16 = 5
    }

    private static let fixedBytes = 4 + Counters.bytesCount

    /// The encoded frame; texts are cut to ``PeerProtocol/textBytesMax`` bytes, and settings beyond
    /// ``settingsMax`` are omitted.
    package var frame: [UInt8] {
        var writer = StructureWriter.payload
        writer.put(state.rawValue)
        writer.put(UInt8(0))
        counters.put(into: &writer)
        writer.endFixedPart()
        writer.putField(Tag.name, unlessEmpty: name.operatorText.peerText)
        writer.putField(Tag.adminURL, unlessEmpty: Array(adminURL.asAdminURL.utf8))
        writer.putField(Tag.version, unlessEmpty: version.operatorText.peerText)
        writer.putField(Tag.condition, unlessEmpty: condition.operatorText.peerText)
        for setting in settings.prefix(Self.settingsMax) {
            writer.putField(Tag.setting, setting.bytes)
        }
        guard let frame = try? writer.frame(.summary) else {
            preconditionFailure("a SUMMARY that is longer than a frame")
        }
        return frame
    }

    /// Decodes the payload of a SUMMARY.
    ///
    /// Control characters in texts are replaced by spaces, a URL that is not one of an admin port
    /// is omitted, and an unknown state is a warning.
    ///
    /// - Throws: The fault, if the payload is not valid.
    package init(payload: Span<UInt8>) throws(PeerFault) {
        var structure = try StructureReader(payload, fixedBytes: Self.fixedBytes, in: .summary)
        self.init(name: "", version: "")
        state = State(rawValue: payload[2]) ?? .warning
        counters = Counters(payload, at: 4)
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.name: name = payload.peerText(field.range).operatorText
            case Tag.adminURL: adminURL = payload.peerText(field.range).asAdminURL
            case Tag.version: version = payload.peerText(field.range).operatorText
            case Tag.condition: condition = payload.peerText(field.range).operatorText
            case Tag.setting:
                guard settings.count < Self.settingsMax else { throw .tooLong(.list) }
                settings.append(try SharedSetting(payload.extracting(field.range)))
            default: break
            }
        }
    }
}

extension SharedSetting {
    /// The encoded setting: digest, length of the name, name, and text.
    fileprivate var bytes: [UInt8] {
        let name = name.operatorText.utf8Prefix(bytesMax: Self.textBytesMax)
        var bytes: [UInt8] = []
        bytes.appendLittle(digest)
        bytes.append(UInt8(name.count))
        bytes += name
        bytes += text.operatorText.utf8Prefix(bytesMax: Self.textBytesMax)
        return bytes
    }

    /// Decodes a setting.
    fileprivate init(_ bytes: Span<UInt8>) throws(PeerFault) {
        guard bytes.count >= 9, bytes.count >= 9 + Int(bytes[8]) else {
            throw .truncated(.summary)
        }
        let end = 9 + Int(bytes[8])
        self.init(bytes.peerText(9..<end).operatorText, digest: bytes.little64(at: 0))
        text = bytes.peerText(end..<bytes.count).operatorText
    }
}

extension MemberSummary.Counters: FixedSizeValue {
    /// The encoded size in bytes.
    package static let bytesCount = 80

    /// Decodes the counters at `offset`.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        requests = bytes.little64(at: offset)
        hits = bytes.little64(at: offset + 8)
        cacheable = bytes.little64(at: offset + 16)
        serverErrors = bytes.little64(at: offset + 24)
        originFetches = bytes.little64(at: offset + 32)
        originFailures = bytes.little64(at: offset + 40)
        sentBytes = bytes.little64(at: offset + 48)
        originBytes = bytes.little64(at: offset + 56)
        memoryUsedBytes = bytes.little64(at: offset + 64)
        diskUsedBytes = bytes.little64(at: offset + 72)
    }

    /// Encodes the counters.
    package func put(into writer: inout StructureWriter) {
        for counter in [
            requests, hits, cacheable, serverErrors, originFetches, originFailures, sentBytes,
            originBytes, memoryUsedBytes, diskUsedBytes,
        ] {
            writer.put(counter)
        }
    }
}

extension String {
    /// The text with spaces in place of control characters, so that it can be shown in a terminal.
    fileprivate var operatorText: String {
        String(String.UnicodeScalarView(unicodeScalars.map { $0.isControl ? " " : $0 }))
    }

    /// The text if it is an absolute URL with `http` or `https` in visible ASCII, which may be a
    /// link on a page, and not too long; empty otherwise.
    fileprivate var asAdminURL: String {
        let isURL = hasPrefix("http://") || hasPrefix("https://")
        let isVisible = utf8.allSatisfy { byte in
            (0x21...0x7E).contains(byte) && !"\"'<>\\`".utf8.contains(byte)
        }
        return isURL && isVisible && utf8.count <= PeerProtocol.textBytesMax ? self : ""
    }
}

extension Unicode.Scalar {
    /// True for the control characters of ASCII and of Latin-1, and for those that change the
    /// direction of text.
    fileprivate var isControl: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}

/// The latest summary of each other member.
package struct MemberSummaryTable: Sendable {
    /// A received summary.
    package struct Entry: Hashable, Sendable {
        /// The summary.
        package let summary: MemberSummary
        /// The process that has sent it.
        private let process: ProcessID
        private let receivedAt: Instant

        /// Creates an entry from its parts.
        fileprivate init(_ summary: MemberSummary, process: ProcessID, receivedAt: Instant) {
            self.summary = summary
            self.process = process
            self.receivedAt = receivedAt
        }

        /// Returns the age of the summary; `nil` if it is older than ``ageMax``, or of another
        /// process than the member's present one.
        package func age(of process: ProcessID, now: Instant) -> Interval? {
            let age = max(.zero, now - receivedAt)
            return process == self.process && age <= ageMax ? age : nil
        }
    }

    private var entries: [NodeID: Entry] = [:]

    /// The age up to which a summary describes the present.
    package static let ageMax = Interval.seconds(60)

    /// Creates an empty table.
    package init() {}

    /// The number of members with a summary.
    package var count: Int { entries.count }

    /// Returns the latest summary of a member; `nil` if it has sent none.
    package subscript(id: NodeID) -> Entry? { entries[id] }

    /// Records a summary in place of the former one of the same member.
    package mutating func receive(_ summary: MemberSummary, from member: Member, now: Instant) {
        entries[member.id] = Entry(summary, process: member.process, receivedAt: now)
    }

    /// Drops the summaries of all members but `members`.
    package mutating func retain(_ members: Set<NodeID>) {
        entries = entries.filter { members.contains($0.key) }
    }
}
