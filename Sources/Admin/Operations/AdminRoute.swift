import Ground
package import HTTPRules
import Telemetry

/// The routing decision for a request to the admin port.
package enum AdminRoute: Sendable {
    /// Run the operation; `arguments` are the values of the path parameters in order.
    case operation(AdminOperation, arguments: [String])
    /// Respond with 404: the path is unknown.
    case notFound
    /// Respond with 405, and `allowed` in Allow (RFC 9110 §15.5.6).
    case methodNotAllowed(allowed: String)

    /// Routes a request; `target` is in origin form, and its query is ignored.
    package init(method: String, target: String) {
        let path = target.prefix { $0 != "?" }
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        var methods: [String] = []
        for operation in AdminOperation.all {
            guard let arguments = Self.arguments(of: segments, as: operation.segments) else {
                continue
            }
            if operation.accepts(method) {
                self = .operation(operation, arguments: arguments)
                return
            }
            methods += operation.method == "GET" ? ["GET", "HEAD"] : [operation.method]
        }
        self =
            methods.isEmpty
            ? .notFound : .methodNotAllowed(allowed: methods.joined(separator: ", "))
    }

    /// Returns the values of the template's parameters; `nil` if the path does not match.
    private static func arguments(
        of segments: [Substring], as template: [Substring]
    ) -> [String]? {
        guard segments.count == template.count else { return nil }
        var arguments: [String] = []
        for (segment, part) in zip(segments, template) {
            if part.hasPrefix("{") {
                guard !segment.isEmpty,
                    let bytes = PercentEncoding.decoded(Array(segment.utf8)[...]),
                    let argument = String(validating: bytes, as: UTF8.self)
                else { return nil }
                arguments.append(argument)
            } else if part != segment {
                return nil
            }
        }
        return arguments
    }

    /// The health paths, which clients may request on the data port too.
    package static let publicPaths = [
        AdminOperation.operation(.getHealth).path, AdminOperation.operation(.getReadiness).path,
    ]

    /// A bit set of the initials of ``publicPaths`` after the slash, indexed by their low six bits.
    package static let publicInitials = publicPaths.reduce(UInt64(0)) {
        $0 | 1 << UInt64(($1.utf8.dropFirst().first ?? 0) & 63)
    }
}

/// The query parameters of a request, validated against its operation.
package struct AdminQuery: Hashable, Sendable {
    /// The decoded values by the names of their parameters.
    private var texts: [String: String] = [:]

    /// The reason why a query is rejected; nothing was done.
    package enum QueryError: Error, Hashable, Sendable {
        case unknownParameter(String, allowed: [String])
        case duplicateParameter(String)
        case invalidValue(String, allowed: String)
        case missingParameter(String)
    }

    /// Parses the part after the question mark, and checks it against the `parameters` of the
    /// operation.
    ///
    /// A `+` stays a plus sign; a choice parameter without a value means `true`.
    ///
    /// - Throws: the first parameter that is unknown, repeated or invalid, or a required one that
    ///   is missing.
    package init(_ query: Substring, _ parameters: [AdminParameter]) throws(QueryError) {
        let known = parameters.filter { !$0.isInPath }
        for part in query.split(separator: "&") {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(sides[0])
            guard let parameter = known.first(where: { $0.name == name }) else {
                throw .unknownParameter(name, allowed: known.map(\.name))
            }
            guard texts[name] == nil else { throw .duplicateParameter(name) }
            let raw = sides.count > 1 ? sides[1] : parameter.isChoice ? "true" : ""
            guard let bytes = PercentEncoding.decoded(Array(raw.utf8)[...]),
                let text = String(validating: bytes, as: UTF8.self),
                parameter.accepts(text)
            else { throw .invalidValue(name, allowed: parameter.allowed) }
            texts[name] = text
        }
        for parameter in known where parameter.isRequired && texts[parameter.name] == nil {
            throw .missingParameter(parameter.name)
        }
    }

    /// Returns the value of a parameter; `nil` if it is absent.
    package subscript(name: String) -> String? { texts[name] }

    /// Returns the value of a parameter as a number; `nil` if it is absent or not a number.
    package func number(_ name: String) -> Int64? { texts[name].flatMap { Int64($0) } }
}

extension AdminParameter {
    fileprivate var isChoice: Bool {
        if case .choice = kind { true } else { false }
    }

    /// Returns true if `text` is a valid value, already decoded.
    fileprivate func accepts(_ text: String) -> Bool {
        switch kind {
        case .text(let bytesMax): 1...bytesMax ~= text.utf8.count
        case .choice(let choices): choices.contains(text)
        case .number(let range):
            text.utf8.allSatisfy(ASCII.isDigit) && Int64(text).map(range.contains) == true
        case .duration(let range): DurationText.parse(text).map(range.contains) == true
        case .nodes:
            text.split(separator: ",", omittingEmptySubsequences: false)
                .allSatisfy { NodeID(String($0)) != nil }
        case .receipt: ReceiptID(text) != nil
        }
    }
}

extension AdminQuery.QueryError {
    /// The problem document for the rejection, with status 400.
    package var problem: ProblemDocument {
        let detail =
            switch self {
            case .unknownParameter(let name, let allowed) where allowed.isEmpty:
                "The parameter \(name.prefix(64)) is unknown; no parameters are allowed here."
            case .unknownParameter(let name, let allowed):
                "The parameter \(name.prefix(64)) is unknown; "
                    + "allowed: \(allowed.joined(separator: ", "))."
            case .duplicateParameter(let name):
                "The parameter \(name) is given twice; it is allowed once."
            case .invalidValue(let name, let allowed):
                "The parameter \(name) has an invalid value; allowed: \(allowed)."
            case .missingParameter(let name): "The parameter \(name) is required."
            }
        return ProblemDocument(
            status: 400, name: "admin-query", title: "The query is invalid",
            detail: detail)
    }
}
