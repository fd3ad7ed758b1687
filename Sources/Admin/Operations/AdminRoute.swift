import HTTPRules

/// What is to be done about one request to the admin port.
package enum AdminRoute: Sendable {
    /// Do it, with the values of the parameters in the path, in their order.
    case operation(AdminOperation, arguments: [String])
    /// 404: there is nothing of this name.
    case notFound
    /// 405 with this in Allow (RFC 9110 §15.5.6).
    case methodNotAllowed(allowed: String)

    /// The route of a request with `method` for `target`, in origin form, whose query is ignored.
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

    /// The values of a template's parameters; nil if the path is none of it.
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

    /// The paths that clients may ask for too, on the data port.
    package static let publicPaths = [
        AdminOperation.operation(.getHealth).path, AdminOperation.operation(.getReadiness).path,
    ]

    /// The letters that ``publicPaths`` begin with, behind the slash, as bits of their low six.
    package static let publicInitials = publicPaths.reduce(UInt64(0)) {
        $0 | 1 << UInt64(($1.utf8.dropFirst().first ?? 0) & 63)
    }
}
