import Ground
import HTTPRules

extension String {
    var bytes: [UInt8] { Array(utf8) }

    /// A text with one character for each byte, so that no byte is lost.
    init(latin bytes: [UInt8]) {
        self.init(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

extension [UInt8] {
    var text: String { String(latin: self) }

    func text(_ extent: Extent) -> String { String(latin: Array(self[extent.range])) }
}

extension ResponseHead {
    /// A response head with the given field lines, each `name: value`.
    init(_ status: UInt16 = 200, _ fields: String...) {
        self.init(status: status, fields: fields)
    }

    init(status: UInt16, fields: [String]) {
        var bytes = "HTTP/1.1 \(status) Any\r\n".bytes
        var lines: [FieldLine] = []
        for field in fields {
            let parts = field.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts[1].drop { $0 == " " }.utf8
            let name = Extent(start: bytes.count, count: parts[0].utf8.count)
            bytes += parts[0].utf8
            bytes += ": ".utf8
            let extent = Extent(start: bytes.count, count: value.count)
            bytes += value
            bytes += "\r\n".utf8
            lines.append(
                FieldLine(id: FieldName(bytes.span, at: name.range), name: name, value: extent))
        }
        bytes += "\r\n".utf8
        self.init(status: status, bytes: bytes, lines: lines)
    }
}

extension SplitMix64 {
    mutating func byte(of choice: [UInt8]) -> UInt8 {
        choice[Int.random(in: 0..<choice.count, using: &self)]
    }

    mutating func text(of choice: String, upTo count: Int) -> String {
        let bytes = choice.bytes
        let length = Int.random(in: 0...count, using: &self)
        return (0..<length).map { _ in byte(of: bytes) }.text
    }
}
