import Ground
package import HTTPRules
import Telemetry

/// The parameters in a request's query, held against those that its operation has.
package struct AdminQuery: Hashable, Sendable {
    private var texts: [String: String] = [:]

    /// Why a query is refused; nothing was done.
    package enum QueryError: Error, Hashable, Sendable {
        case unknownParameter(String, allowed: [String])
        case duplicateParameter(String)
        case invalidValue(String, allowed: String)
        case missingParameter(String)
    }

    /// Reads what follows the question mark; a `+` stays one, and a choice that may be `true` is so
    /// if its name stands alone.
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

    /// The value of a parameter; nil if it is not said.
    package subscript(name: String) -> String? { texts[name] }

    package func number(_ name: String) -> Int64? { texts[name].flatMap { Int64($0) } }
}

extension AdminParameter {
    fileprivate var isChoice: Bool {
        if case .choice = kind { true } else { false }
    }

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
    package var problem: ProblemDocument {
        let detail =
            switch self {
            case .unknownParameter(let name, let allowed) where allowed.isEmpty:
                "The parameter \(name.prefix(64)) is not known; there are none here."
            case .unknownParameter(let name, let allowed):
                "The parameter \(name.prefix(64)) is not known; "
                    + "\(allowed.joined(separator: ", ")) can be used."
            case .duplicateParameter(let name):
                "The parameter \(name) is said twice; it is allowed once."
            case .invalidValue(let name, let allowed):
                "The parameter \(name) has a value that is not allowed; allowed is: \(allowed)."
            case .missingParameter(let name): "The parameter \(name) is needed."
            }
        return ProblemDocument(
            status: 400, name: "admin-query", title: "The query cannot be followed",
            detail: detail)
    }
}
