import Ground
import HTTPRules

/// A request to a node.
package struct NodeRequest: Hashable, Sendable {
    /// A field of a head.
    package struct Field: Hashable, Sendable {
        package var name: String
        package var value: String
    }

    package var method = "GET"
    /// In origin form: visible ASCII.
    package var target: String
    /// Nil for that of the place.
    package var host: String?
    package var fields: [Field] = []
    package var body: [UInt8] = []

    package init(_ method: String = "GET", _ target: String, body: [UInt8] = []) {
        self.method = method
        self.target = target
        self.body = body
    }

    /// What is sent to `place`; the connection is for this alone.
    func serialized(for place: NodeEndpoint) -> [UInt8] {
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(host ?? "\(place)")\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        if method != "GET", method != "HEAD" { head += "Content-Length: \(body.count)\r\n" }
        return Array("\(head)Connection: close\r\n\r\n".utf8) + body
    }

    /// Path without query.
    var path: Substring { target.prefix { $0 != "?" } }
}

/// What a node has answered.
package struct NodeResponse: Hashable, Sendable {
    package var status: UInt16
    /// In their order.
    package var fields: [NodeRequest.Field]
    package var body: [UInt8] = []

    init(_ head: ResponseHead) {
        status = head.status
        let bytes = head.bytes.span
        fields = head.lines.map { line in
            NodeRequest.Field(
                name: String(decoding: bytes.copy(line.name.range), as: UTF8.self),
                value: String(decoding: bytes.copy(line.value.range), as: UTF8.self))
        }
    }

    /// True for a status of 200 to 299.
    package var isSuccess: Bool { (200..<300).contains(status) }

    /// The values of a field, as one; `name` is in lower case.
    package subscript(name: String) -> String? {
        let values = fields.filter { $0.name.lowercased() == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}
