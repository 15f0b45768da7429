import { useQuery } from "@tanstack/react-query";
import { MessageSquareText } from "lucide-react";
import { useState } from "react";
import { api, ok, type Schemas } from "../api/client";
import { type Block, Content } from "../parts/result";
import { plain } from "../parts/text";
import { Badge, Card, Empty, Failure, Query } from "../parts/ui";

type Prompt = Schemas["Prompt"];

export function Prompts(props: { server: string }) {
  const prompts = useQuery({
    queryKey: ["prompts", props.server],
    queryFn: () => ok(api.GET("/api/v1/prompts", { params: { query: { server: props.server } } })),
  });
  return (
    <Query of={prompts} what="the prompts">
      {(data) =>
        data.prompts.length === 0 ? (
          <Empty title="This server offers no prompt" icon={MessageSquareText} />
        ) : (
          data.prompts.map((prompt) => <PromptForm key={prompt.name} prompt={prompt} />)
        )
      }
    </Query>
  );
}

/** A message of a prompt, filled in. */
interface Message {
  role: string;
  content: Block | Block[];
}

interface Argument {
  name: string;
  description?: string;
  required?: boolean;
}

function PromptForm(props: { prompt: Prompt }) {
  const { prompt } = props;
  const [values, setValues] = useState<Record<string, string>>({});
  const [messages, setMessages] = useState<Message[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const get = async () => {
    setError(null);
    const path = { server: prompt.server, name: prompt.name };
    try {
      const filled = await ok(
        api.POST("/api/v1/prompts/{server}/{name}", {
          params: { path },
          body: { arguments: values as Record<string, never> },
        }),
      );
      setMessages(filled.messages as unknown as Message[]);
    } catch (reason) {
      setError(reason);
    }
  };
  return (
    <Card title={plain(prompt.title ?? prompt.name)}>
      <p className="small">{plain(prompt.description)}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void get();
        }}
      >
        {(prompt.arguments as unknown as Argument[]).map((each) => (
          <label className="field" key={each.name}>
            <span>
              {plain(each.name)}
              {each.required ? " (required)" : ""} {plain(each.description ?? "")}
            </span>
            <input
              required={each.required ?? false}
              value={values[each.name] ?? ""}
              onChange={(event) => setValues({ ...values, [each.name]: event.target.value })}
            />
          </label>
        ))}
        <button type="submit">Get</button>
      </form>
      {error ? <Failure error={error} /> : null}
      {messages?.map((message, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: messages have no identity and never move
        <div key={index} className="message">
          <Badge>{plain(message.role)}</Badge>
          {[message.content].flat().map((block, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: blocks have no identity and never move
            <Content key={place} block={block} />
          ))}
        </div>
      ))}
    </Card>
  );
}
