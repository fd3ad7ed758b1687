package import Ground
import Telemetry

/// One thing that the admin port does: what asks for it, who may, and what can come of it.
///
/// ``table`` is what requests are routed by, and what ``OpenAPI`` renders.
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

    package let id: ID
    package let method: String
    /// Segments in braces are parameters.
    package let path: String
    let segments: [Substring]
    /// Nil for everybody.
    package let role: AdminRole?
    /// One line, without a full stop.
    package let summary: String
    package let parameters: [AdminParameter]
    package let body: RequestBody?
    package let responses: [Response]

    /// A body of JSON that a request has to bring.
    package struct RequestBody: Sendable {
        package let schema: JSON
        package let bytesMax: Int
    }

    /// What may come back.
    package struct Response: Sendable {
        package let status: UInt16
        /// One clause, without a full stop.
        package let meaning: String
        /// Media type and shape; nil for a problem document.
        package let content: (type: String, shape: JSON)?
        /// Further media types of the same shape, for those who ask for them.
        package let otherTypes: [String]

        package init(_ status: UInt16, _ meaning: String, _ shape: JSON) {
            self.init(status, meaning, "application/json", shape)
        }

        package init(
            _ status: UInt16, _ meaning: String, _ type: String, otherTypes: [String] = [],
            _ shape: JSON
        ) {
            self.status = status
            self.meaning = meaning
            self.otherTypes = otherTypes
            content = (type, shape)
        }

        /// An answer with a problem document.
        package init(problem status: UInt16, _ meaning: String) {
            self.status = status
            self.meaning = meaning
            otherTypes = []
            content = nil
        }
    }

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

    /// What every operation of its kind may be answered with.
    private static func commonResponses(
        _ role: AdminRole?, hasBody: Bool, _ parameters: [AdminParameter]
    ) -> [Response] {
        var responses = [
            Response(problem: 400, "The request, or its query, cannot be understood"),
            Response(problem: 414, "The target is too long"),
            Response(problem: 431, "The fields are too long"),
        ]
        if role != nil {
            responses += [
                Response(problem: 401, "A token is needed, or this one is not known"),
                Response(problem: 403, "The role is too small, or a page of another site asks"),
                Response(problem: 421, "Without a token the host must be an address or localhost"),
                Response(problem: 429, "Too many wrong tokens, or reports for this one"),
            ]
        }
        if hasBody { responses.append(Response(problem: 413, "The body is too large")) }
        return responses
    }

    /// What an answer costs the node, in the units of ``AdminRateLimiter``, roughly by the time
    /// that it takes; 0 for what everybody may ask for, and for what more than a look needs.
    var cost: Int {
        guard role == .read else { return 0 }
        switch id {
        case .getSupportSnapshot, .getEntryBody: return 25
        case .getEntry, .getRing, .getMetrics, .listPurges, .listPrefetches: return 5
        default: return 1
        }
    }

    /// HEAD is answered as GET is, without the body.
    func accepts(_ method: String) -> Bool {
        method == self.method || (method == "HEAD" && self.method == "GET")
    }
}

/// A parameter of a request, in its path or its query.
package struct AdminParameter: Sendable {
    package enum Kind: Sendable {
        /// Of so many bytes at most, not empty.
        case text(bytesMax: Int)
        case choice([String])
        case number(ClosedRange<Int64>)
        /// A number and a unit: `250ms`, `1s`.
        case duration(ClosedRange<Interval>)
        /// ``Ground/NodeID``s, with commas between them.
        case nodes
        /// A ``ReceiptID``.
        case receipt
    }

    package let name: String
    package let isInPath: Bool
    package let isRequired: Bool
    package let kind: Kind
    /// One clause, without a full stop.
    package let meaning: String

    static func path(_ name: String, _ kind: Kind, _ meaning: String) -> AdminParameter {
        AdminParameter(
            name: name, isInPath: true, isRequired: true, kind: kind, meaning: meaning)
    }

    static func query(
        _ name: String, _ kind: Kind, _ meaning: String, isRequired: Bool = false
    ) -> AdminParameter {
        AdminParameter(
            name: name, isInPath: false, isRequired: isRequired, kind: kind, meaning: meaning)
    }

    /// What it may be, in words.
    var allowed: String {
        switch kind {
        case .text(let bytesMax): "1 to \(bytesMax) bytes of UTF-8, percent-encoded"
        case .choice(let choices): choices.joined(separator: ", ")
        case .number(let range): "\(range.lowerBound) to \(range.upperBound)"
        case .duration(let range):
            "\(DurationText.format(range.lowerBound)) to "
                + "\(DurationText.format(range.upperBound)), with ms, s or m"
        case .nodes: "32 hexadecimal digits, or several times so many with commas between them"
        case .receipt: "32 hexadecimal digits, a hyphen and a number from 1"
        }
    }

    /// What it may be, as JSON Schema has it.
    package var schema: JSON {
        switch kind {
        case .text(let bytesMax): JSONSchema.text(length: 1...bytesMax)
        case .choice(let choices): JSONSchema.enumeration(choices)
        case .number(let range): JSONSchema.integer(range)
        case .duration: JSONSchema.text(pattern: "^[0-9]+(ms|s|m)$")
        case .nodes: JSONSchema.text(pattern: "^[0-9a-f]{32}(,[0-9a-f]{32})*$")
        case .receipt: ReceiptID.schema
        }
    }
}
