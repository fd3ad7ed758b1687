package import Ground
import Telemetry

/// One operation of the admin port: its method and path, the role it needs, and its responses.
///
/// ``all`` is the table that requests are routed by and that ``OpenAPI`` renders.
package struct AdminOperation: Sendable {
    /// The operation's id in the OpenAPI document.
    package enum ID: String, CaseIterable, Sendable {
        case showDashboard
        case getHealth
        case getReadiness
        case getMetrics
        case getOpenAPI
        case getStatus
        case getStatistics
        case watchStatistics
        case listHotEntries
        case getEntry
        case getEntryBody
        case listMembers
        case forgetMembers
        case bootstrap
        case recover
        case getRing
        case listOrigins
        case listSites
        case listCertificates
        case getConditions
        case getHistory
        case getConfiguration
        case getLogLevel
        case setLogLevel
        case getSupportSnapshot
        case listPurges
        case issuePurge
        case getReceipt
        case listPrefetches
        case beginPrefetch
        case getPrefetch
        case cancelPrefetch
        case drain
        case undrain
    }

    /// The operation's id.
    package let id: ID
    /// The operation's method; for GET, HEAD is accepted too.
    package let method: String
    /// The path template; segments in braces are parameters.
    package let path: String
    /// The segments of ``path`` between slashes; the first is empty.
    let segments: [Substring]
    /// The least role that is needed; `nil` if no authentication is needed.
    package let role: AdminRole?
    /// A summary on one line, without a full stop.
    package let summary: String
    /// The parameters in path and query.
    package let parameters: [AdminParameter]
    /// The required request body; `nil` if there is none.
    package let body: RequestBody?
    /// All possible responses, including those common to operations of the same kind.
    package let responses: [Response]

    /// A required request body in JSON.
    package struct RequestBody: Sendable {
        /// The JSON Schema of the body.
        package let schema: JSONSchema
        /// The maximum size of the body in bytes.
        package let bytesMax: Int
    }

    /// A possible response.
    package struct Response: Sendable {
        /// The status code.
        package let status: UInt16
        /// The meaning as one clause, without a full stop.
        package let meaning: String
        /// The media type and the schema; `nil` for a problem document.
        package let content: (type: String, schema: JSONSchema)?
        /// The other media types that content negotiation may select, with the same schema.
        package let otherTypes: [String]

        /// Creates a response in JSON.
        package init(_ status: UInt16, _ meaning: String, _ schema: JSONSchema) {
            self.init(status, meaning, "application/json", schema)
        }

        /// Creates a response of media type `type`.
        ///
        /// - Parameters:
        ///   - status: the status code.
        ///   - meaning: one clause, without a full stop.
        ///   - type: the media type.
        ///   - otherTypes: the media types that the client may ask for instead.
        ///   - schema: the JSON Schema of the body.
        package init(
            _ status: UInt16, _ meaning: String, _ type: String, otherTypes: [String] = [],
            _ schema: JSONSchema
        ) {
            self.status = status
            self.meaning = meaning
            self.otherTypes = otherTypes
            content = (type, schema)
        }

        /// Creates a response with a problem document.
        package init(problem status: UInt16, _ meaning: String) {
            self.status = status
            self.meaning = meaning
            otherTypes = []
            content = nil
        }
    }

    /// Declares an operation; `responses` are those beyond the common ones, which are added.
    init(
        _ name: ID, _ method: String, _ path: String, for role: AdminRole?, _ summary: String,
        parameters: [AdminParameter] = [], body: RequestBody? = nil, responses: [Response]
    ) {
        self.id = name
        self.method = method
        self.path = path
        segments = path.split(separator: "/", omittingEmptySubsequences: false)
        self.role = role
        self.summary = summary
        self.parameters = parameters
        self.body = body
        self.responses = responses + Self.commonResponses(role, hasBody: body != nil, parameters)
    }

    /// Returns the responses that every operation with these properties can have.
    private static func commonResponses(
        _ role: AdminRole?, hasBody: Bool, _ parameters: [AdminParameter]
    ) -> [Response] {
        var responses = [
            Response(problem: 400, "The request or its query is malformed"),
            Response(problem: 414, "The request target is too long"),
            Response(problem: 431, "The header fields are too long"),
        ]
        if role != nil {
            responses += [
                Response(problem: 401, "A token is required, or the token is unknown"),
                Response(
                    problem: 403,
                    "The role is insufficient, or the request comes from a page of another site"
                ),
                Response(
                    problem: 421, "Without a token, the host must be an IP address or localhost"),
                Response(problem: 429, "Too many wrong tokens, or too many requests with this one"),
            ]
        }
        if hasBody { responses.append(Response(problem: 413, "The body is too large")) }
        return responses
    }

    /// The cost of a response in the units of ``AdminRateLimiter``, roughly proportional to its
    /// time; 0 for operations without authentication, and for those that need more than the role
    /// read.
    var cost: Int {
        guard role == .read else { return 0 }
        switch id {
        case .getSupportSnapshot, .getEntryBody: return 25
        case .getEntry, .getRing, .getMetrics, .listPurges, .listPrefetches, .getHistory: return 5
        default: return 1
        }
    }

    /// Returns true if the operation accepts `method`; HEAD is accepted where GET is.
    func accepts(_ method: String) -> Bool {
        method == self.method || (method == "HEAD" && self.method == "GET")
    }
}

/// A parameter in the path or the query of a request.
package struct AdminParameter: Sendable {
    /// The type of a parameter's value.
    package enum Kind: Sendable {
        /// A text of 1 to `bytesMax` bytes.
        case text(bytesMax: Int)
        case choice([String])
        case number(ClosedRange<Int64>)
        /// A number and a unit: `250ms`, `1s`.
        case duration(ClosedRange<Interval>)
        /// A list of ``Ground/NodeID``s, separated by commas.
        case nodes
        /// A ``ReceiptID``.
        case receipt
    }

    /// The parameter's name.
    package let name: String
    /// True if the parameter is in the path, false if it is in the query.
    package let isInPath: Bool
    /// True if the parameter must be present.
    package let isRequired: Bool
    /// The type of the value.
    package let kind: Kind
    /// The meaning as one clause, without a full stop.
    package let meaning: String

    /// Declares a parameter in the path.
    static func path(_ name: String, _ kind: Kind, _ meaning: String) -> AdminParameter {
        AdminParameter(
            name: name, isInPath: true, isRequired: true, kind: kind, meaning: meaning)
    }

    /// Declares a parameter in the query.
    static func query(
        _ name: String, _ kind: Kind, _ meaning: String, isRequired: Bool = false
    ) -> AdminParameter {
        AdminParameter(
            name: name, isInPath: false, isRequired: isRequired, kind: kind, meaning: meaning)
    }

    /// The allowed values in words.
    var allowed: String {
        switch kind {
        case .text(let bytesMax): "1 to \(bytesMax) bytes of UTF-8, percent-encoded"
        case .choice(let choices): choices.joined(separator: ", ")
        case .number(let range): "\(range.lowerBound) to \(range.upperBound)"
        case .duration(let range):
            "\(DurationText.format(range.lowerBound)) to "
                + "\(DurationText.format(range.upperBound)), with ms, s or m"
        case .nodes: "node ids of 32 hexadecimal digits, separated by commas"
        case .receipt: "32 hexadecimal digits, a hyphen and a number from 1"
        }
    }

    /// The JSON Schema of the value.
    package var schema: JSONSchema {
        switch kind {
        case .text(let bytesMax): .text(length: 1...bytesMax)
        case .choice(let choices): .enumeration(choices)
        case .number(let range): .integer(range)
        case .duration: .text(pattern: "^[0-9]+(ms|s|m)$")
        case .nodes: .text(pattern: "^[0-9a-f]{32}(,[0-9a-f]{32})*$")
        case .receipt: ReceiptID.schema
        }
    }
}
