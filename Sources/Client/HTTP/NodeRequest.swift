import Ground
import HTTPRules

/// A request to a node.
package struct NodeRequest: Hashable, Sendable {
    /// A header field.
    package struct Field: Hashable, Sendable {
        /// The name.
        package var name: String
        /// The value.
        package var value: String
    }

    /// The method.
    package var method = "GET"
    /// The target in origin form, in visible ASCII.
    package var target: String
    /// The value of Host; `nil` for that of the endpoint.
    package var host: String?
    /// The header fields without Host.
    package var fields: [Field] = []
    /// The body.
    package var body: [UInt8] = []

    /// Creates a request.
    package init(_ method: String = "GET", _ target: String, body: [UInt8] = []) {
        self.method = method
        self.target = target
        self.body = body
    }

    /// Returns the bytes of the request to `place`, on a connection that is not reused.
    func serialized(for place: NodeEndpoint) -> [UInt8] {
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(host ?? "\(place)")\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        if method != "GET", method != "HEAD" { head += "Content-Length: \(body.count)\r\n" }
        return Array("\(head)Connection: close\r\n\r\n".utf8) + body
    }

    /// The path without query.
    var path: Substring { target.prefix { $0 != "?" } }
}

/// A response of a node.
package struct NodeResponse: Hashable, Sendable {
    /// The status.
    package var status: UInt16
    /// The header fields in the order of arrival.
    package var fields: [NodeRequest.Field]
    /// The body; empty if it was passed to a handler.
    package var body: [UInt8] = []

    /// Creates a response without its body.
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

    /// Returns the values of a field joined as one, `nil` if there is none; `name` is in lower
    /// case.
    package subscript(name: String) -> String? {
        let values = fields.filter { $0.name.lowercased() == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}
