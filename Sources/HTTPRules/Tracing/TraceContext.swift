import Ground

/// The position of a request in a distributed trace (W3C Trace Context, levels 1 and 2), from
/// traceparent and tracestate.
package struct TraceContext: Hashable, Sendable {
    /// The identifier of the trace; not zero.
    package let traceID: UInt128
    /// The identifier of the sender's span; not zero.
    package let parentID: UInt64
    /// The known flags: 1 sampled, 2 random trace id.
    package let flags: UInt8
    /// The members of tracestate, separated by commas; at most ``TraceState/bytesMax`` bytes, empty
    /// for none.
    package let state: [UInt8]

    /// The length in bytes of a traceparent as written here, and the minimum length of any version.
    package static let parentBytes = 55
    private static let knownFlags: UInt8 = 3

    private init(traceID: UInt128, parentID: UInt64, flags: UInt8, state: [UInt8]) {
        self.traceID = traceID
        self.parentID = parentID
        self.flags = flags
        self.state = state
    }

    /// Parses the values of traceparent and tracestate; `nil` if `parent` is not valid.
    ///
    /// Of a later version, the parts are read that it shares with this one. An invalid `state`
    /// counts as empty.
    package init?(parent: [UInt8], state: [UInt8] = []) {
        guard let parent = Self.parse(parent.span, at: parent.indices) else { return nil }
        self.init(
            traceID: parent.traceID, parentID: parent.parentID, flags: parent.flags,
            state: TraceState.parse(state))
    }

    /// Parses the field lines of a request, whose extents lie in `bytes`; `nil` unless there is
    /// exactly one, valid traceparent.
    package init?(_ lines: [FieldLine], in bytes: Span<UInt8>) {
        var parent: Extent?
        var states: [UInt8] = []
        for line in lines {
            switch line.id {
            case .traceparent:
                guard parent == nil else { return nil }
                parent = line.value
            case .tracestate:
                // Several lines are one list (RFC 9110 §5.3).
                if !states.isEmpty { states.append(UInt8(ascii: ",")) }
                states += bytes.copy(line.value.range)
            default: break
            }
        }
        guard let parent else { return nil }
        self.init(parent: bytes.copy(parent.range), state: states)
    }

    /// Returns the value of traceparent for a request that does a part of this request's work.
    ///
    /// - Parameter span: the identifier of that part; not zero.
    /// - Returns: the field value, ``parentBytes`` bytes of ASCII.
    package func traceparent(span: UInt64) -> [UInt8] {
        precondition(span != 0, "a span has to have a name")
        var text = Array("00-".utf8)
        text.reserveCapacity(Self.parentBytes)
        appendTraceID(to: &text)
        text.append(UInt8(ascii: "-"))
        HexDigits(span).append(to: &text)
        text += Array("-0".utf8)
        text.append(ASCII.hexDigit(flags))
        return text
    }

    /// The 32 digits of the trace's identifier.
    package var traceIDText: String {
        var text: [UInt8] = []
        appendTraceID(to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    private func appendTraceID(to bytes: inout [UInt8]) {
        HexDigits(UInt64(truncatingIfNeeded: traceID >> 64)).append(to: &bytes)
        HexDigits(UInt64(truncatingIfNeeded: traceID)).append(to: &bytes)
    }

    private static func parse(
        _ bytes: Span<UInt8>, at range: Range<Int>
    ) -> (traceID: UInt128, parentID: UInt64, flags: UInt8)? {
        let start = range.lowerBound
        guard range.count >= parentBytes, bytes[start + 2] == dash, bytes[start + 35] == dash,
            bytes[start + 52] == dash,
            let version = bytes.hexadecimal(at: start..<start + 2), version != 0xFF,
            // Additions of a later version follow another dash.
            range.count == parentBytes || (version > 0 && bytes[start + parentBytes] == dash),
            let traceID = bytes.hexadecimal(at: start + 3..<start + 35), traceID != 0,
            let parentID = bytes.hexadecimal(at: start + 36..<start + 52), parentID != 0,
            let flags = bytes.hexadecimal(at: start + 53..<start + 55)
        else { return nil }
        return (traceID, UInt64(parentID), UInt8(flags) & knownFlags)
    }

    private static let dash = UInt8(ascii: "-")
}

/// The parser of tracestate, which tracing systems exchange beside traceparent and which is opaque
/// to others (W3C Trace Context §3.3).
package enum TraceState {
    /// The maximum number of bytes that are forwarded.
    package static let bytesMax = 512
    private static let membersMax = 32
    private static let keyBytesMax = 256
    private static let valueBytesMax = 256
    /// The length in bytes above which members are dropped first if the list is too long.
    private static let memberBytes = 128

    /// Returns the members of `text` as one list without spaces; empty if it is not valid.
    ///
    /// If it is longer than ``bytesMax``, members are dropped until it fits: first the long ones,
    /// then the last, which are the oldest.
    package static func parse(_ text: [UInt8]) -> [UInt8] {
        let bytes = text.span
        var members: [Range<Int>] = []
        var cursor = 0
        while let member = FieldSyntax.nextElement(
            bytes, at: text.indices, cursor: &cursor, hasQuotedStrings: false)
        {
            guard members.count < membersMax, isValid(bytes, at: member) else { return [] }
            members.append(member)
        }
        drop(from: &members) { $0.count > memberBytes }
        drop(from: &members) { _ in true }
        return Array(members.map { text[$0] }.joined(separator: [UInt8(ascii: ",")]))
    }

    /// Drops members that satisfy `isDropped`, the last first, until the list is short enough.
    private static func drop(from members: inout [Range<Int>], _ isDropped: (Range<Int>) -> Bool) {
        var bytes = members.reduce(0) { $0 + $1.count + 1 } - 1
        for index in members.indices.reversed() where bytes > bytesMax {
            guard isDropped(members[index]) else { continue }
            bytes -= members.remove(at: index).count + 1
        }
    }

    private static func isValid(_ bytes: Span<UInt8>, at member: Range<Int>) -> Bool {
        var equals = member.lowerBound
        while equals < member.upperBound, bytes[equals] != UInt8(ascii: "=") { equals += 1 }
        guard equals < member.upperBound else { return false }
        return isKey(bytes, at: member.lowerBound..<equals)
            && isValue(bytes, at: equals + 1..<member.upperBound)
    }

    private static func isKey(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        guard 1...keyBytesMax ~= range.count else { return false }
        for index in range {
            switch bytes[index] {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                continue
            case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "*"), UInt8(ascii: "/"),
                UInt8(ascii: "@"):
                if index == range.lowerBound { return false }
            default: return false
            }
        }
        return true
    }

    /// Returns true for printable ASCII without `=`; the comma has already ended the member.
    private static func isValue(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        guard 1...valueBytesMax ~= range.count else { return false }
        for index in range
        where bytes[index] == UInt8(ascii: "=") || !(0x20...0x7E ~= bytes[index]) {
            return false
        }
        return true
    }
}
