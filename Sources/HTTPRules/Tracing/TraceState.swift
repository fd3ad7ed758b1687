/// Reads tracestate: what tracing systems tell each other beside traceparent, and nobody else looks
/// into (W3C Trace Context §3.3).
package enum TraceState {
    /// The most bytes that are passed on.
    package static let bytesMax = 512
    private static let membersMax = 32
    private static let keyBytesMax = 256
    private static let valueBytesMax = 256
    /// Of too many bytes the members that are longer go first.
    private static let memberBytes = 128

    /// The members of `text` as one list without spaces; empty if it is not valid.
    ///
    /// Of one with more than ``bytesMax`` bytes as many members as fit: the long ones go first,
    /// then the last, which is the oldest.
    package static func parse(_ text: [UInt8]) -> [UInt8] {
        let bytes = text.span
        var members: [Range<Int>] = []
        var start = 0
        while start <= bytes.count {
            var end = start
            while end < bytes.count, bytes[end] != UInt8(ascii: ",") { end += 1 }
            let member = FieldSyntax.trimmed(bytes, at: start..<end)
            start = end + 1
            if member.isEmpty { continue }
            guard members.count < membersMax, isValid(bytes, at: member) else { return [] }
            members.append(member)
        }
        drop(from: &members) { $0.count > memberBytes }
        drop(from: &members) { _ in true }
        return Array(members.map { text[$0] }.joined(separator: [UInt8(ascii: ",")]))
    }

    /// Drops members that `isDropped`, from the last on, until the list is short enough.
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

    /// Printable ASCII without `=`; the comma has ended the member.
    private static func isValue(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        guard 1...valueBytesMax ~= range.count else { return false }
        for index in range
        where bytes[index] == UInt8(ascii: "=") || !(0x20...0x7E ~= bytes[index]) {
            return false
        }
        return true
    }
}
