/// One case of the table: a name, the RFC section it tests, and its exchanges.
struct TableCase: Sendable {
    var name = ""
    /// The section, for example `9111 §5.2.2.1`.
    var section = ""
    /// The host of the site under test.
    var host = "a.example"
    var exchanges: [TableExchange] = []
}

/// One request with the origin's responses and the expectations.
struct TableExchange: Sendable {
    var method = "GET"
    /// The suffix of the case's own path; a complete target if it begins with `=`.
    var suffix = ""
    var fields: [String] = []
    var trailers: [String] = []
    var body: String?
    /// True to repeat the request until the expectations hold, for background work of the node.
    var isRepeated = false
    /// The origin's responses in order; the last one is repeated for further requests.
    var answers: [TableAnswer] = []
    var expectations: [TableExpectation] = []
}

/// The origin's response to one request.
struct TableAnswer: Sendable {
    enum Ending: String, Sendable {
        case whole
        /// The connection is closed without a response.
        case close
        /// The connection is reset without a response.
        case reset
        /// No response is sent.
        case hang
        /// The connection is closed in the middle of the body.
        case cut
    }

    var status = 200
    var reason = ""
    var fields: [String] = []
    var trailers: [String] = []
    /// The body; `nil` for the default one, which contains the response's number.
    var body: String?
    var hasDate = true
    /// True if the body ends with the connection instead of by a length.
    var isEndedByClose = false
    var ending = Ending.whole
    /// The preceding interim responses.
    var interim: [TableAnswer] = []

    /// True if a response with this status has a body.
    var hasBody: Bool { status >= 200 && status != 204 && status != 304 }

    func has(_ name: String) -> Bool {
        fields.contains { $0.lowercased().hasPrefix(name.lowercased() + ":") }
    }
}

/// A condition on a field's value; several lines count as one, joined by `, `.
enum TableMatch: Sendable {
    case absent
    case present
    case equal(String)
    case contains(String)
    case lacks(String)

    func holds(_ values: [String]) -> Bool {
        let value = values.joined(separator: ", ")
        return switch self {
        case .absent: values.isEmpty
        case .present: !values.isEmpty
        case .equal(let text): !values.isEmpty && value == text
        case .contains(let text): !values.isEmpty && value.contains(text)
        case .lacks(let text): !value.contains(text)
        }
    }
}

/// One expectation about an exchange.
enum TableExpectation: Sendable {
    /// One unconditional origin request is sent, and its response is served.
    case fetched
    /// No origin request is sent.
    case cached
    /// One conditional origin request is sent to revalidate the stored response.
    case validated
    /// The stored response is served, and one origin request is sent in the background.
    case background
    /// One origin request is sent and fails, and the stored response is served instead.
    case stale
    /// The number of origin requests.
    case asked(ClosedRange<Int>)
    case status(Int)
    case field(String, TableMatch)
    case trailer(String, TableMatch)
    /// An interim response of that status was relayed, with this field if one is given.
    case interim(Int, String?)
    case age(ClosedRange<Int>)
    /// The body is that of the origin's response of this number, from 1 in each case.
    case answer(Int)
    case body(String)
    /// The response may be truncated.
    case breakable
    /// A parameter of the node's own member of Cache-Status.
    case cacheStatus(String, TableMatch)
    /// A field of the last origin request in this exchange.
    case originField(String, TableMatch)
    case originTarget(String)
    case originMethod(String)
    case originBody(String)
    case originTrailer(String, TableMatch)
}
