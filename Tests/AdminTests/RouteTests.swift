import Admin
import Testing

@Suite("Routes of the admin port")
struct RouteTests {
    private func route(_ method: String, _ target: String) -> String {
        switch AdminRoute(method: method, target: target) {
        case .operation(let operation, let arguments):
            ([operation.id.rawValue] + arguments).joined(separator: " ")
        case .notFound: "not found"
        case .methodNotAllowed(let allowed): "only \(allowed)"
        }
    }

    @Test(
        "Each operation is found by its method and path, with or without a query",
        arguments: AdminOperation.ID.allCases)
    func every(_ name: AdminOperation.ID) {
        let operation = AdminOperation.operation(name)
        let path = operation.path.replacing(/\{[a-z]+\}/, with: "x")
        let arguments = operation.path.contains("{") ? " x" : ""
        for target in [path, path + "?", path + "?verbose=1"] {
            #expect(route(operation.method, target) == name.rawValue + arguments)
            if operation.method == "GET" {
                #expect(route("HEAD", target) == name.rawValue + arguments)
            }
        }
    }

    @Test(
        "Another method gives the allowed ones; methods are case-sensitive",
        arguments: ["OPTIONS", "PURGE", "get", "TRACE", ""])
    func methods(_ method: String) {
        #expect(route(method, "/healthz") == "only GET, HEAD")
        #expect(route(method, "/admin/v1/purges") == "only GET, HEAD, POST")
        #expect(route(method, "/admin/v1/log-level") == "only GET, HEAD, PUT")
        #expect(route(method, "/admin/v1/drain") == "only POST")
        #expect(route(method, "/admin/v1/members/x/forget") == "only POST")
    }

    @Test(
        "A path of no operation is not found, whatever the method",
        arguments: [
            "", "/health", "/healthz/", "/HEALTHZ", "//healthz", "*", "?/healthz",
            "/admin/v1/../v1/status", "/admin/v1/%73tatus", "/admin/v1/members//forget",
            "/admin/v1/members/a/b/forget", "/admin/v1/purges/", "/metrics/../../etc/passwd",
        ])
    func others(_ target: String) {
        for method in ["GET", "POST"] { #expect(route(method, target) == "not found") }
    }

    @Test("A query may have known parameters only, once each and with an allowed value")
    func queries() throws {
        func read(_ query: String) throws(AdminQuery.QueryError) -> AdminQuery {
            try AdminQuery(query[...], AdminOperation.operation(.listPurges).parameters)
        }
        let some = try read("limit=7&id=a%20b")
        #expect(some.number("limit") == 7 && some["id"] == "a b")
        #expect(try read("")["limit"] == nil)
        let faults: [(String, AdminQuery.QueryError)] = [
            ("limits=7", .unknownParameter("limits", allowed: ["id", "limit"])),
            ("limit=7&limit=7", .duplicateParameter("limit")),
            ("limit=0", .invalidValue("limit", allowed: "1 to 100")),
            ("limit=+5", .invalidValue("limit", allowed: "1 to 100")),
            ("limit", .invalidValue("limit", allowed: "1 to 100")),
            ("limit=99999999999999999999", .invalidValue("limit", allowed: "1 to 100")),
        ]
        for (query, fault) in faults { #expect(throws: fault, "\(query)") { try read(query) } }
        for query in ["id=", "id=%FF", "id=%4", "id=" + String(repeating: "a", count: 129)] {
            #expect(throws: AdminQuery.QueryError.self, "\(query)") { try read(query) }
        }
    }
}
