package import Admin
import FoundationEssentials
package import Ground
import HTTPRules
import NIOCore

/// A client of one node's admin port.
package struct NodeClient: Sendable {
    package let endpoint: NodeEndpoint
    /// Or that there are none, which each question ends with.
    private let addresses: Result<[SocketAddress], ExchangeError>
    private let token: [UInt8]?
    /// For each answer.
    let timeout: Interval
    private let timeoutText: String

    /// Looks the place's name up.
    ///
    /// `limit` is for each answer, and `limitText` what faults call it.
    package init(
        _ place: NodeEndpoint, token: [UInt8]?, timeout limit: Interval,
        timeoutText limitText: String
    ) {
        self.endpoint = place
        self.token = token
        self.timeout = limit
        self.timeoutText = limitText
        addresses = place.resolved
    }

    /// The operator has something to prove, which is for those alone whom it has named.
    var hasToken: Bool { token != nil }

    /// The same at another place, to which nothing is proven.
    func unauthenticated(_ place: NodeEndpoint) -> NodeClient {
        NodeClient(place, token: nil, timeout: timeout, timeoutText: timeoutText)
    }

    // MARK: Questions

    /// The question of an operation; `arguments` are for the parameters in its path.
    package static func request(
        _ name: AdminOperation.ID, _ arguments: [String] = [],
        query: [(name: String, value: String)] = [], body: JSON? = nil
    ) -> NodeRequest {
        let row = AdminOperation.operation(name)
        var rest = arguments[...]
        let segments = row.path.split(separator: "/", omittingEmptySubsequences: false).map {
            $0.hasPrefix("{") ? PercentEncoding.encoded(rest.popFirst() ?? "") : String($0)
        }
        let pairs = query.map { "\($0.name)=\(PercentEncoding.encoded($0.value))" }
        let target =
            segments.joined(separator: "/") + (pairs.isEmpty ? "" : "?")
            + pairs.joined(separator: "&")
        return NodeRequest(row.method, target, body: body.map { Array($0.compactText.utf8) } ?? [])
    }

    /// Begins to ask; `patience` is how much longer than otherwise the answer may take.
    func start(_ question: NodeRequest, extraTimeout: Interval = .zero) -> Exchange {
        var question = question
        if let token {
            question.fields.append(
                .init(
                    name: "Authorization",
                    value: "Bearer \(String(decoding: token, as: UTF8.self))"))
        }
        return Exchange(
            question, endpoint: endpoint, by: addresses,
            until: BootClock.now() + timeout + extraTimeout)
    }

    func url(_ question: NodeRequest) -> String { "http://\(endpoint)\(question.path)" }

    // MARK: Answers

    /// What came of an exchange that is over.
    func response(of exchange: Exchange) throws(CommandError) -> NodeResponse {
        let url = url(exchange.request)
        switch exchange.outcome {
        case .success(let response) where response.isSuccess: return response
        case .success(let response): throw CommandError(response, url: url)
        case .failure(let failure): throw CommandError(failure, url: url, timeout: timeoutText)
        case nil: preconditionFailure("\(url) is still being asked")
        }
    }

    /// The document in an answer.
    func document<Document: Decodable>(
        _: Document.Type, in response: NodeResponse, to question: NodeRequest
    ) throws(CommandError) -> Document {
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(response.body))
        else { throw .notNode(url(question)) }
        return document
    }

    /// The document that an exchange has brought.
    func document<Document: Decodable>(
        _ type: Document.Type, of exchange: Exchange
    ) throws(CommandError) -> Document {
        try document(type, in: try response(of: exchange), to: exchange.request)
    }

    /// Asks, and waits for the answer.
    func send(
        _ question: NodeRequest, extraTimeout: Interval = .zero
    ) throws(CommandError) -> NodeResponse {
        let exchange = start(question, extraTimeout: extraTimeout)
        Exchange.advance([exchange])
        return try response(of: exchange)
    }

    /// Asks, and waits for the document.
    package func send<Document: Decodable>(
        _ question: NodeRequest, decoding type: Document.Type
    ) throws(CommandError) -> Document {
        try document(type, in: try send(question), to: question)
    }
}

extension PercentEncoding {
    /// `text` so that it is one parameter, or one segment of a path, whatever it holds.
    static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            if ASCII.isLetter(byte) || ASCII.isDigit(byte) || "-._~".utf8.contains(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
