/// What a key that is pressed in `nuthatch top` asks for.
package enum TopKey: Hashable, Sendable {
    case quit
    case sort
    case pause
    /// The next node, then all together.
    case next
    case previous
    case help
    /// Back to all nodes, or out of help.
    case escape

    /// The keys whose bytes a terminal has sent together; others are left out.
    package static func keys(_ bytes: [UInt8]) -> [TopKey] {
        var keys: [TopKey] = []
        var rest = bytes[...]
        while let first = rest.first {
            if first == 0x1B {
                let (key, count) = escaped(rest)
                if let key { keys.append(key) }
                rest = rest.dropFirst(count)
            } else {
                if let key = plain(first) { keys.append(key) }
                rest = rest.dropFirst()
            }
        }
        return keys
    }

    private static func plain(_ byte: UInt8) -> TopKey? {
        switch byte {
        // Ctrl-C and Ctrl-D, where the terminal does not make signals of them.
        case UInt8(ascii: "q"), UInt8(ascii: "Q"), 0x03, 0x04: .quit
        case UInt8(ascii: "s"): .sort
        case UInt8(ascii: "p"), UInt8(ascii: " "): .pause
        case UInt8(ascii: "n"), UInt8(ascii: "j"), 0x09: .next
        case UInt8(ascii: "N"), UInt8(ascii: "k"): .previous
        case UInt8(ascii: "?"), UInt8(ascii: "h"): .help
        default: nil
        }
    }

    /// A control sequence (ECMA-48 §5.4) and its length; the escape key alone if none follows.
    private static func escaped(_ bytes: ArraySlice<UInt8>) -> (TopKey?, Int) {
        let body = bytes.dropFirst()
        guard let kind = body.first, kind == UInt8(ascii: "[") || kind == UInt8(ascii: "O") else {
            return (.escape, 1)
        }
        let end = body.dropFirst().firstIndex { (0x40...0x7E).contains($0) }
        guard let end else { return (nil, bytes.count) }
        let count = end - bytes.startIndex + 1
        switch bytes[end] {
        case UInt8(ascii: "B"), UInt8(ascii: "C"): return (.next, count)
        case UInt8(ascii: "A"), UInt8(ascii: "D"), UInt8(ascii: "Z"): return (.previous, count)
        default: return (nil, count)
        }
    }
}
