import Admin
import Testing

@Suite("Routes of the admin port")
struct AdminRouteTests {
    @Test(
        "a page answers GET and HEAD, with or without a query",
        arguments: AdminPage.allCases)
    func pagesAnswerReads(page: AdminPage) {
        for method in ["GET", "HEAD"] {
            for target in [page.rawValue, page.rawValue + "?verbose=1", page.rawValue + "?"] {
                #expect(AdminRoute(method: method, target: target) == .page(page))
            }
        }
    }

    @Test(
        "a page refuses every other method, and methods are case-sensitive",
        arguments: ["POST", "PUT", "DELETE", "OPTIONS", "PURGE", "get", ""])
    func pagesRefuseOtherMethods(method: String) {
        for page in AdminPage.allCases {
            #expect(
                AdminRoute(method: method, target: page.rawValue)
                    == .methodNotAllowed(allowed: "GET, HEAD"))
        }
    }

    @Test("an action is begun by POST and by nothing else", arguments: AdminAction.allCases)
    func actions(action: AdminAction) {
        for target in [action.rawValue, action.rawValue + "?really"] {
            #expect(AdminRoute(method: "POST", target: target) == .action(action))
            for method in ["GET", "HEAD", "PUT", "post"] {
                #expect(
                    AdminRoute(method: method, target: target)
                        == .methodNotAllowed(allowed: "POST"))
            }
        }
    }

    @Test("a member is forgotten by POST to its place, and by nothing else")
    func forget() {
        let target = "/admin/v1/members/0123/forget"
        #expect(AdminRoute(method: "POST", target: target) == .forget("0123"))
        #expect(AdminRoute(method: "POST", target: target + "?now") == .forget("0123"))
        for method in ["GET", "DELETE"] {
            #expect(
                AdminRoute(method: method, target: target) == .methodNotAllowed(allowed: "POST"))
        }
        for other in ["/admin/v1/members//forget", "/admin/v1/members/a/b/forget"] {
            #expect(AdminRoute(method: "POST", target: other) == .notFound)
        }
    }

    @Test(
        "a target that is no page is not found, whatever the method",
        arguments: ["", "/", "/health", "/healthz/", "/HEALTHZ", "//healthz", "*", "?/healthz"])
    func otherTargetsAreNotFound(target: String) {
        #expect(AdminRoute(method: "GET", target: target) == .notFound)
        #expect(AdminRoute(method: "POST", target: target) == .notFound)
    }
}
