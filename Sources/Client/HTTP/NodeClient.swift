package import Admin
import FoundationEssentials
package import Ground
import HTTPRules
import NIOCore

/// A client of one node's admin port.
package struct NodeClient: Sendable {
    /// The address of the admin port.
    package let endpoint: NodeEndpoint
    /// The resolved addresses, or the failure with which each request ends.
    private let addresses: Result<[SocketAddress], ExchangeError>
    /// The bearer token; `nil` for none.
    private let token: [UInt8]?
    /// The time limit for each response.
    let timeout: Interval
    /// The time limit as errors show it.
    private let timeoutText: String

    /// Creates a client, and resolves the node's name.
    ///
    /// - Parameters:
    ///   - place: the address of the admin port.
    ///   - token: the bearer token; `nil` for none.
    ///   - limit: the time limit for each response.
    ///   - limitText: the time limit as errors show it.
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

    /// True if requests carry a token, which is only for nodes that the operator has named.
    var hasToken: Bool { token != nil }

    /// Returns a client of another node, without the token.
    func unauthenticated(_ place: NodeEndpoint) -> NodeClient {
        NodeClient(place, token: nil, timeout: timeout, timeoutText: timeoutText)
    }

    // MARK: Requests

    /// Returns the request of an operation; `arguments` replace the parameters of its path.
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

    /// Starts a request; `extraTimeout` is added to the time limit.
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

    /// Returns the URL of a request for errors.
    func url(_ question: NodeRequest) -> String { "http://\(endpoint)\(question.path)" }

    // MARK: Responses

    /// Returns the successful response of an exchange that has ended; a failure and an error status
    /// are errors.
    func response(of exchange: Exchange) throws(CommandError) -> NodeResponse {
        let url = url(exchange.request)
        switch exchange.outcome {
        case .success(let response) where response.isSuccess: return response
        case .success(let response): throw CommandError(response, url: url)
        case .failure(let failure): throw CommandError(failure, url: url, timeout: timeoutText)
        case nil: preconditionFailure("\(url) is still being asked")
        }
    }

    /// Returns the successful response of an exchange that has ended, and decodes its document.
    func reply<Document: Decodable>(
        _ type: Document.Type, of exchange: Exchange
    ) throws(CommandError) -> Reply<Document> {
        let response = try response(of: exchange)
        guard let document = try? JSONDecoder().decode(type, from: Data(response.body)) else {
            throw CommandError(.malformed, url: url(exchange.request), timeout: timeoutText)
        }
        return Reply(response: response, document: document)
    }

    /// Decodes the document in the response of an exchange.
    func document<Document: Decodable>(
        _ type: Document.Type, of exchange: Exchange
    ) throws(CommandError) -> Document {
        try reply(type, of: exchange).document
    }

    /// Sends a request and waits until the exchange has ended.
    func exchange(_ question: NodeRequest, extraTimeout: Interval = .zero) -> Exchange {
        let exchange = start(question, extraTimeout: extraTimeout)
        Exchange.advance([exchange])
        return exchange
    }

    /// Sends a request and waits for the response.
    func send(_ question: NodeRequest) throws(CommandError) -> NodeResponse {
        try response(of: exchange(question))
    }

    /// Sends a request and waits for the response with its document.
    func send<Document: Decodable>(
        _ question: NodeRequest, as type: Document.Type, extraTimeout: Interval = .zero
    ) throws(CommandError) -> Reply<Document> {
        try reply(type, of: exchange(question, extraTimeout: extraTimeout))
    }

    /// Sends a request and waits for the document.
    package func send<Document: Decodable>(
        _ question: NodeRequest, decoding type: Document.Type
    ) throws(CommandError) -> Document {
        try send(question, as: type).document
    }
}

/// A response and the document in it.
struct Reply<Document> {
    let response: NodeResponse
    let document: Document
}

extension PercentEncoding {
    /// Returns the text percent-encoded as one parameter or path segment.
    static func encoded(_ text: String) -> String {
        String(decoding: encoded(text.utf8), as: UTF8.self)
    }
}
