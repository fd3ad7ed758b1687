import Ground
import HTTPRules

/// A request to a node.
struct Question: Hashable, Sendable {
    struct Field: Hashable, Sendable {
        var name: String
        var value: String
    }

    var method = "GET"
    /// In origin form: visible ASCII.
    var target: String
    /// Nil for that of the place.
    var host: String?
    var fields: [Field] = []
    var body: [UInt8] = []

    init(_ method: String = "GET", _ target: String, body: [UInt8] = []) {
        self.method = method
        self.target = target
        self.body = body
    }

    /// What is sent to `place`; the connection is for this alone.
    func bytes(for place: AskedPlace) -> [UInt8] {
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(host ?? "\(place)")\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        if method != "GET", method != "HEAD" { head += "Content-Length: \(body.count)\r\n" }
        return Array("\(head)Connection: close\r\n\r\n".utf8) + body
    }

    /// Path without query.
    var path: Substring { target.prefix { $0 != "?" } }
}

/// What a node has answered.
struct Answer: Hashable, Sendable {
    var status: UInt16
    /// In their order.
    var fields: [Question.Field]
    var body: [UInt8] = []

    init(_ head: AnswerHead) {
        status = head.status
        let bytes = head.bytes.span
        fields = head.lines.map { line in
            Question.Field(
                name: String(decoding: bytes.copy(line.name.range), as: UTF8.self),
                value: String(decoding: bytes.copy(line.value.range), as: UTF8.self))
        }
    }

    var isSuccess: Bool { (200..<300).contains(status) }

    /// The values of a field, as one.
    subscript(name: String) -> String? {
        let values = fields.filter { $0.name.lowercased() == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}
