import { useQueryClient } from "@tanstack/react-query";
import { api } from "./api/client";

export function SignOut() {
  const queries = useQueryClient();
  const leave = async () => {
    await api.DELETE("/api/v1/session");
    await queries.resetQueries();
  };
  return (
    <button type="button" className="compact" onClick={() => void leave()}>
      Sign out
    </button>
  );
}
