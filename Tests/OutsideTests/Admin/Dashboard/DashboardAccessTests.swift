import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Access control in the dashboard, and its error messages")
    struct DashboardAccessTests {
        @Test("A wrong token is refused with an explanation; a valid one enables its role")
        func tokens() throws {
            let guarded = try GuardedNode()
            let page = try DashboardStage(guarded.node)
            try page.wait(for: "document.getElementById('token-dialog').open")
            let field = try page.element("#token-field")
            try page.wait(for: "document.activeElement.id === 'token-field'")
            for (token, words) in [
                ("", "Enter the token"), ("two words", "A token has no spaces"),
                ("nobody-has-this-one", "This node did not accept the token."),
            ] {
                try field.clear()
                try field.type(token)
                try page.browser.press(.enter)
                try page.wait("token-problem", says: words)
                #expect(try field.property("type") == "password" && page.text("node-id") == "–")
            }
            try page.click("#token-cancel")
            try page.wait("notices", says: "This node requires a token.")
            try page.click(".notice.locked button")
            try field.type(GuardedNode.token("read"))
            try page.browser.press(.enter)
            try page.goLive()
            try page.wait("role", says: "read")
            #expect(try !page.element("#drain").isEnabled && !page.element("#purge-send").isEnabled)
            #expect(try page.text("purge-reason").contains("requires the role “purge”"))
            #expect(try page.text("drain-reason").contains("requires the role “admin”"))
            try page.click("#forget-token")
            try page.wait(for: "document.getElementById('token-dialog').open")
            try page.element("#token-field").type(GuardedNode.token("admin"))
            try page.click("#token-send")
            try page.goLive()
            try page.wait("role", says: "admin")
            #expect(try page.element("#drain").isEnabled && page.element("#purge-send").isEnabled)
            #expect(try page.browser.consoleMessages().allSatisfy { $0.contains("401") })
        }

        @Test("After many wrong tokens the page shows the delay, and then accepts a valid token")
        func attempts() throws {
            let guarded = try GuardedNode()
            let page = try DashboardStage(guarded.node)
            try page.wait(for: "document.getElementById('token-dialog').open")
            let field = try page.element("#token-field")
            for number in 0..<60 {
                try field.clear()
                try field.type("guess-guess-guess-\(number)")
                try page.browser.press(.enter)
                // The button is disabled during a request and while the delay lasts.
                let button = "document.getElementById('token-send')"
                try page.wait(
                    for: "!\(button).disabled || \(button).textContent.startsWith('Wait')")
                if try page.text("token-problem").contains("Too many wrong tokens") { break }
            }
            try page.wait("token-problem", says: "Too many wrong tokens.")
            try page.wait("token-problem", says: "You may try again now.")
            try field.clear()
            try field.type(GuardedNode.token("purge"))
            try page.browser.press(.enter)
            try page.goLive()
        }

        @Test("A node can be drained and undrained from the page")
        func drain() throws {
            let stage = try ClusterStage(2)
            let node = stage.nodes[0]
            let page = try DashboardStage(node)
            try page.goLive()
            func readiness() throws -> Int { try node.connectAdmin().get("/readyz").status }
            for (button, state, notice, status) in [
                ("Drain", "Draining", "draining", 503), ("Undrain", "Ready", "", 200),
            ] {
                try page.click("#drain")
                try page.wait("drain-title", says: "\(button) this node?")
                // Escape only closes the dialog.
                try page.browser.press(.escape)
                try page.wait(for: "!document.getElementById('drain-dialog').open")
                try page.click("#drain")
                try page.click("#drain-send")
                try page.wait("state", says: state)
                try page.wait("conditions", says: notice)
                try expectSoon { try readiness() == status }
            }
            #expect(try page.text("conditions").isEmpty)
            try page.expectNoComplaint()
        }

        @Test("A node that stops responding is reported as lost and found again automatically")
        func lost() throws {
            let stage = try DiskStage()
            let page = try DashboardStage(stage.node)
            try page.goLive()
            stage.node.pause()
            try page.wait(for: "document.title.includes('Not connected')")
            try page.wait("notices", says: "The figures are from before the interruption.")
            // Clicked while the node is suspended: once it responds, the page reconnects by itself.
            try page.click(".notice.lost button")
            stage.node.resume()
            try page.goLive()
            try page.wait(for: "\(DashboardStage.text("notices")) === ''")
        }
    }
}
