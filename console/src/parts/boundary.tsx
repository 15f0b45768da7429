// A page that fails shows the error; the rest of the console stays usable.

import { Component, type ReactNode } from "react";
import { Failure } from "./ui";

interface State {
  error: unknown;
}

export class Boundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <>
        <h1>This page failed</h1>
        <Failure error={error} retry={() => this.setState({ error: null })} />
      </>
    );
  }
}
